"""The suite that every ``Chat`` has to pass, ours and yours; give it one by a fixture::

class TestMyChat(ChatContract):
    @pytest.fixture
    def chat(self) -> Chat:
        return MyChat()          # answers whatever it is asked
"""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from operators.agents.chat import Answer, Chat, Message
from operators.agents.recorded import Answered, Record, Recorded, Replayed, dump, load

QUESTION = (Message("system", "Be brief."), Message("user", "Reply with the word ready."))


class ChatContract:
    """What holds for every chat. A subclass gives the fixture ``chat``."""

    asks = 4  # requests side by side

    @pytest.fixture
    def chat(self) -> Chat:
        """The chat under test."""
        raise NotImplementedError("give your chat by a fixture named 'chat'")

    def test_it_says_which_model_it_is(self, chat: Chat) -> None:
        """The ledger and the log name it."""
        assert chat.settings.name and chat.settings.room > 0

    def test_an_answer_says_what_it_cost(self, chat: Chat) -> None:
        """At least one attempt, and tokens, counted or estimated."""
        spent = chat.ask(QUESTION, limit=64).spent
        assert spent.attempts >= 1 and spent.tokens > 0 and spent.seconds >= 0
        assert (spent.usd is not None) == chat.settings.priced or not spent.usd

    def test_several_threads_may_ask_at_once(self, chat: Chat) -> None:
        """Requests are under way side by side."""
        with ThreadPoolExecutor(self.asks) as threads:
            answers = list(threads.map(lambda _: chat.ask(QUESTION, limit=64), range(self.asks)))
        assert all(isinstance(answer, Answer) for answer in answers)

    def test_an_answer_survives_its_record(self, chat: Chat) -> None:
        """What was recorded gives the same answer again."""
        told: list[Record] = []
        answer = Recorded(chat, told.append, "1").ask(QUESTION, limit=64)
        records = [load(json.loads(json.dumps(dump(record)))) for record in told]
        assert isinstance(records[-1], Answered)
        assert Replayed(chat.settings, records).ask(QUESTION, limit=64) == answer
