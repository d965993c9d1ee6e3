"""What requests cost: counted by the server where it counted, estimated where it could not."""

from __future__ import annotations

from dataclasses import dataclass

from operators.proposal import Usage


@dataclass(frozen=True)
class Spent:
    """Tokens, money and time of one request or of several.

    Attributes:
        tokens_in, tokens_out: as the server counted them, of completed answers.
        cached: how many of ``tokens_in`` it had in its cache.
        guessed_in, guessed_out: of attempts that broke, and of answers that came without a count: what was
            reserved for them, never more.
        attempts: HTTP requests sent.
        seconds: from the first attempt to the last byte, waits between attempts included.
        usd: by the model's prices; None where it has none.
    """

    tokens_in: int = 0
    tokens_out: int = 0
    cached: int = 0
    guessed_in: int = 0
    guessed_out: int = 0
    attempts: int = 0
    seconds: float = 0.0
    usd: float | None = 0.0

    @property
    def estimated(self) -> bool:
        """Whether any of it is a guess."""
        return self.guessed_in + self.guessed_out > 0

    @property
    def tokens(self) -> int:
        """All of them."""
        return self.tokens_in + self.tokens_out + self.guessed_in + self.guessed_out

    @property
    def usage(self) -> Usage:
        """In a proposal's terms."""
        return Usage(self.tokens, self.usd or 0.0, self.seconds)

    def __add__(self, other: Spent) -> Spent:
        return Spent(
            self.tokens_in + other.tokens_in,
            self.tokens_out + other.tokens_out,
            self.cached + other.cached,
            self.guessed_in + other.guessed_in,
            self.guessed_out + other.guessed_out,
            self.attempts + other.attempts,
            self.seconds + other.seconds,
            None if self.usd is None or other.usd is None else self.usd + other.usd,
        )
