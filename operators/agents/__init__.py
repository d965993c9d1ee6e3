"""Agents: operators that ask a language model. Importing this loads neither ``openai`` nor any template.

    model = ModelSettings.parse("local/qwen@http://127.0.0.1:8000/v1")
    chat = Recorded(Client(model, os.environ), record, call="17")
    offer = Mutate()(brief, chat)                      # operators.agents.writers
    offer.value or offer.reason, offer.spent

See docs/agents.md.
"""

from __future__ import annotations

from operators.agents.chat import Answer, Chat, Message, Tool, ToolCall, ToolResult
from operators.agents.client import Client, reservation
from operators.agents.context import AgentBrief
from operators.agents.errors import ChatError, SetupError
from operators.agents.hearing import told
from operators.agents.models import ModelSettings
from operators.agents.recorded import Recorded, Replayed
from operators.agents.scripted import ScriptedChat
from operators.agents.spent import Spent

__all__ = [
    "AgentBrief",
    "Answer",
    "Chat",
    "ChatError",
    "Client",
    "Message",
    "ModelSettings",
    "Recorded",
    "Replayed",
    "ScriptedChat",
    "SetupError",
    "Spent",
    "Tool",
    "ToolCall",
    "ToolResult",
    "reservation",
    "told",
]
