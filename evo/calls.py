"""Requests to models under way beside the loop, each in a thread of its own, and their records in RUN/calls.

``CALL.asked.json`` is there before anything is sent, ``CALL.answer.json`` before anything is used: written by
the thread that waited, so that an answer outlives a process that is killed before its loop looks. Files are
named by the call and their hashes stand in the log.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue

from operators.agents import chat
from operators.agents.chat import Chat
from operators.agents.client import Client
from operators.agents.errors import Broken, ChatError
from operators.agents.recorded import Answered, Asked, Failed, Record, Recorded, dump, load
from populations.events import Certainty, Settled
from populations.folder import CALLS
from populations.text import put

GONE = "the answer is not in the run's folder any more"


@dataclass(frozen=True)
class Arrival:
    """The end of a request and the hash of its record; None: it could not be stored."""

    record: Answered | Failed
    sha: str | None

    def settled(self) -> Settled:
        """As an event."""
        record = self.record
        spent = record.answer.spent if isinstance(record, Answered) else record.spent
        certainty = Certainty.ESTIMATED if spent.estimated else Certainty.COUNTED
        failure = record.kind if isinstance(record, Failed) else None
        return Settled(
            record.call, spent.tokens, spent.usd or 0.0, spent.seconds, certainty, self.sha, failure
        )


class Calls:
    """Sends requests and keeps what comes back. Use it from one thread; it has its own for waiting.

    Args:
        run: the run's folder; None: somebody else keeps the records.
        chats: by the name of their model.
    """

    def __init__(self, run: Path | None, chats: Mapping[str, Chat]) -> None:
        self._folder, self._chats = run and run / CALLS, chats
        self._arrivals: SimpleQueue[Arrival] = SimpleQueue()
        self._closed = False

    def keep(self, record: Record) -> str:
        """Store a request, or what came back; its hash."""
        return self._store(f"{record.call}.{'asked' if isinstance(record, Asked) else 'answer'}", record)

    def send(self, asked: Asked) -> None:
        """Make a request that is stored; it arrives some time later."""
        # Not a pool: nobody who ends may have to wait for a model.
        threading.Thread(target=self._send, args=(asked,), name=f"call {asked.call}", daemon=True).start()

    def arrivals(self, wait_s: float = 0.0) -> list[Arrival]:
        """What came back since the last time; waits for the first one.

        Args:
            wait_s: seconds to wait at most.
        """
        found: list[Arrival] = []
        with suppress(Empty):
            found.append(self._arrivals.get(timeout=wait_s) if wait_s > 0 else self._arrivals.get_nowait())
            while True:
                found.append(self._arrivals.get_nowait())
        return found

    def request(self, call: str) -> Asked | None:
        """A request that was stored."""
        record = self._read(f"{call}.asked")
        return record if isinstance(record, Asked) else None

    def answer(self, call: str) -> Arrival | None:
        """What came back for a call and was stored, also by an earlier process."""
        record = self._read(f"{call}.answer")
        if not isinstance(record, Answered | Failed):
            return None
        return Arrival(record, _sha(_text(record)))

    def close(self) -> None:
        """Give connections back. A request that this breaks stays open: nobody knows what came of it."""
        self._closed = True
        for each in self._chats.values():
            if isinstance(each, Client):
                each.close()

    def _send(self, asked: Asked) -> None:
        sha: dict[str, str] = {}
        ended: list[Answered | Failed] = []

        def keep(record: Record) -> None:
            if isinstance(record, Answered) or (isinstance(record, Failed) and not self._closed):
                ended.append(record)
                sha[record.call] = self.keep(record)

        try:
            Recorded(self._chats[asked.model], keep, root_of(asked.call), number_of(asked.call) - 1).ask(
                chat.from_json(asked.messages), chat.tools_from_json(asked.tools), asked.limit
            )
        except ChatError:
            pass  # it is a record
        except Exception as why:  # a fault of ours, or a full disk: it costs this call, never the run
            if not ended and not self._closed:
                reason = f"the request failed: {type(why).__name__}"
                ended.append(Failed(asked.call, asked.key, Broken.__name__, reason, asked.reserved))
        for record in ended:
            self._arrivals.put(Arrival(record, sha.get(asked.call)))

    def _store(self, name: str, record: Record) -> str:
        text = _text(record)
        if self._folder is None:
            return _sha(text)
        self._folder.mkdir(exist_ok=True)
        put(self._folder / f"{name}.json", text.encode())
        return _sha(text)

    def _read(self, name: str) -> Record | None:
        if self._folder is None:
            return None
        try:
            return load(json.loads((self._folder / f"{name}.json").read_text(encoding="utf-8")))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError):
            return None  # damaged: as if it had not arrived


def turn(root: str, number: int) -> str:
    """The name of a call: the conversation's, and which of its requests it is."""
    return f"{root}.{number}"


def root_of(call: str) -> str:
    """The conversation that a call belongs to."""
    return call.rpartition(".")[0]


def number_of(call: str) -> int:
    """Which of its conversation's requests a call is."""
    return int(call.rpartition(".")[2])


def _text(record: Record) -> str:
    return json.dumps(dump(record), indent=1) + "\n"


def _sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
