"""The models of a run, spoken to once before anything else: what is wrong with one is said in one line."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from evo.ledger import refuse_unpriced
from evo.settings import Settings, SettingsError
from operators.agents.chat import Chat
from operators.agents.client import Client
from operators.agents.errors import SetupError
from operators.agents.probe import Probe, probe

ALONE = "no model is named: structural operators search alone (--model NAME adds agents)"


@dataclass(frozen=True)
class Speakers:
    """Chats by the name of their model, what the models said at the start, and that in lines for people."""

    chats: Mapping[str, Chat] = field(default_factory=dict)
    probes: tuple[Probe, ...] = ()
    lines: tuple[str, ...] = (ALONE,)


def opened(settings: Settings) -> Speakers:
    """A chat with every model of the settings, each asked one tiny thing.

    A model that is there but has trouble just now is none that a run is refused for: the search may outlast
    it.

    Args:
        settings: models and budgets.

    Raises:
        SettingsError: a model that the user has to do something about, or one without a price where money is
            limited.
    """
    if not settings.models:
        return Speakers()
    refuse_unpriced(
        settings.usd, {each.name: each.price_out if each.priced else None for each in settings.models}
    )
    probes, chats = [], dict[str, Chat]()
    for model in settings.models:
        found = probe(model, os.environ)
        if isinstance(found.failure, SetupError):
            raise SettingsError(found.says)
        probes.append(found)
        chats[model.name] = Client(model, os.environ)
    return Speakers(chats, tuple(probes), tuple(f"model {each.model}: {each.says}" for each in probes))
