"""What may go wrong with a model, as one line each; no message ever holds a key.

::

    ChatError                 every failure of a request; ``spent`` says what it cost
    ├── SetupError            the user has to act: worth ending a command before the first evaluation
    │   ├── BadModel          a name, address or price that cannot be meant
    │   ├── NoKey             the environment variable is not set, or holds no key
    │   ├── KeyRefused        the endpoint does not take the key
    │   ├── UnknownModel      the endpoint has no such model
    │   ├── Redirected        the address leads elsewhere; a key is not sent along
    │   └── Unreachable       nothing answers at the address
    ├── OutOfContext          the prompt is longer than the model takes
    ├── Refused               the endpoint says that the request itself is wrong
    └── Broken                the request came to nothing; another one may not
        ├── RateLimited       too many requests, or no credit left, after all retries
        ├── ServerFault       an error of the server's, after all retries
        ├── TimedOut          no whole answer in time, after all retries
        ├── Dropped           the connection broke, after all retries
        ├── Garbled           an answer that is none: not JSON, another schema, cut off in transit
        └── TooLarge          more bytes than any answer has
"""

from __future__ import annotations

from operators.agents.spent import Spent


class ChatError(Exception):
    """A request that led to no answer, in one line.

    Attributes:
        spent: what it cost all the same; estimates where nobody counted.
    """

    def __init__(self, message: str, spent: Spent | None = None) -> None:
        super().__init__(" ".join(message.split()))
        self.spent = spent or Spent()


class SetupError(ChatError):
    """The user has to act."""


class BadModel(SetupError):
    """A name, address or price that cannot be meant."""


class NoKey(SetupError):
    """The environment variable is not set, or holds no key."""


class KeyRefused(SetupError):
    """The endpoint does not take the key."""


class UnknownModel(SetupError):
    """The endpoint has no such model."""


class Redirected(SetupError):
    """The address leads elsewhere."""


class Unreachable(SetupError):
    """Nothing answers at the address."""


class OutOfContext(ChatError):
    """The prompt is longer than the model takes."""


class Refused(ChatError):
    """The endpoint says that the request itself is wrong."""


class Broken(ChatError):
    """The request came to nothing; another one may not."""


class RateLimited(Broken):
    """Too many requests, or no credit left, after all retries."""


class ServerFault(Broken):
    """An error of the server's, after all retries."""


class TimedOut(Broken):
    """No whole answer in time, after all retries."""


class Dropped(Broken):
    """The connection broke, after all retries."""


class Garbled(Broken):
    """An answer that is none."""


class TooLarge(Broken):
    """More bytes than any answer has."""


KINDS: dict[str, type[ChatError]] = {
    kind.__name__: kind
    for kind in (
        ChatError, BadModel, NoKey, KeyRefused, UnknownModel, Redirected, Unreachable, OutOfContext, Refused,
        Broken, RateLimited, ServerFault, TimedOut, Dropped, Garbled, TooLarge,
    )
}  # fmt: skip
