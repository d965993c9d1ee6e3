"""What a search may spend and how it divides it: frozen, loaded from TOML, checked before anything starts."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import fields
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from operators.agents.errors import BadModel
from operators.agents.models import OPENAI_KEY, ModelSettings
from populations.text import read_text


class SettingsError(Exception):
    """A setting that cannot be meant; the message says which, where and what to do, in one line."""


class Effort(StrEnum):
    """Presets: "quick" ends in about three minutes, "full" in half an hour."""

    QUICK = "quick"
    FULL = "full"


class Control(StrEnum):
    """A search that lacks one thing, at equal budget: what it is worth shows beside a whole search."""

    BEST_OF_N = "best-of-n"  # every child is one of a starting kernel
    RANDOM_PARENT = "random-parent"  # parents are any measured kernels
    NO_CROSSOVER = "no-crossover"
    RANDOM_OPERATOR = "random-operator"  # operators are chosen whatever they gained


class Settings(BaseModel):
    """All that a run is told beside its problem and target. The constructor is the configuration.

    Attributes:
        evaluations: stop after this many judged kernels; None: no such limit.
        minutes: stop after this much wall time, calibrating and closing included; None: no such limit.
        usd: stop before model calls cost more than this many US dollars; None: no such limit.
        tokens: the same in tokens, of prompts and answers together.
        control: search without one of its parts, for comparison; None: the whole search.
        seed: decides every choice of the search (not the judge's inputs, which are secret).
        population: how many kernels may be parents at a time.
        per_structure: how many of them may differ in their numbers only.
        tournament: how many parents compete for each selection.
        batch: kernels built side by side before they are judged one by one; None: one a core.
        crossover: share of asks that cross two parents, where two can be crossed.
        tune_share: share of asks that tune a new structure, while one is due.
        tune_evaluations: how many tune evaluations a promising new structure gets before it is left.
        finalists: how many kernels are measured again before the closing table.
        counsel_share: share of the calls of models that may be for a diagnosis or lessons; 0: none.
        reflect_every: judged kernels, steps of the tuner left out, from one reflection to the next; 0: none.
        patience: stop as "exhausted" after this many asks in a row that led to no evaluation.
        weights: per operator, 1.0 unless told; 0 switches it off.
        operators: further operators, each as "package.module:Name".
        models: that agents speak to; none: structural operators alone. No two have one name.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    evaluations: Annotated[int, Field(gt=0)] | None = None
    minutes: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    usd: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    tokens: Annotated[int, Field(gt=0)] | None = None
    control: Control | None = None
    seed: int = 0
    population: int = Field(default=24, ge=2)
    per_structure: int = Field(default=3, ge=1)
    tournament: int = Field(default=3, ge=1)
    batch: Annotated[int, Field(ge=1)] | None = None
    crossover: float = Field(default=0.12, ge=0, le=1)
    tune_share: float = Field(default=0.6, ge=0, le=1)
    tune_evaluations: int = Field(default=4, ge=0)
    finalists: int = Field(default=3, ge=1)
    counsel_share: float = Field(default=0.2, ge=0, lt=1)
    reflect_every: int = Field(default=50, ge=0)
    patience: int = Field(default=200, ge=1)
    weights: dict[str, Annotated[float, Field(ge=0, allow_inf_nan=False)]] = Field(default_factory=dict)
    operators: tuple[str, ...] = ()
    models: tuple[ModelSettings, ...] = ()


SHOWN = 60  # characters of a refused value
_BUDGETS = ("evaluations", "minutes")
_PRESETS: dict[Effort, dict[str, Any]] = {
    Effort.QUICK: {"minutes": 2.75},
    Effort.FULL: {"minutes": 30.0, "population": 48, "tune_evaluations": 8, "finalists": 5, "patience": 1000},
}


def settings(effort: Effort | str = Effort.QUICK, file: Path | None = None, **overrides: object) -> Settings:
    """A preset, over it a file's values, over both what was named outright.

    Naming any budget, in the file or outright, drops the preset's: ``evaluations=500`` means 500, however
    long that takes.

    Args:
        effort: the preset.
        file: a TOML file with any of the keys of ``Settings``.
        overrides: further values; those that are None are left out. ``models`` may be names, as
            ``ModelSettings.parse`` reads them; a name alone may be that of a model in the file.

    Raises:
        SettingsError: an unknown key, a value out of range, a file that cannot be read.
    """
    try:
        preset = _PRESETS[Effort(effort)]
    except ValueError:
        raise SettingsError(f"effort {effort!r} is unknown: say one of {', '.join(Effort)}") from None
    where = str(file) if file else "settings"
    named = _read(file) if file else {}
    given = {key: value for key, value in overrides.items() if value is not None}
    if "models" in given:
        given["models"] = _named_models(given["models"], named.get("models", ()))
    if any(key in given for key in _BUDGETS):
        named = {key: value for key, value in named.items() if key not in _BUDGETS}
    if any(key in named or key in given for key in _BUDGETS):
        preset = {key: value for key, value in preset.items() if key not in _BUDGETS}
    return checked({**preset, **named, **given}, where)


def checked(values: Mapping[str, Any], where: str) -> Settings:
    """The settings these values make.

    Raises:
        SettingsError: an unknown key or a value out of range; the message names the nearest known key.
    """
    for key in values:
        if key not in Settings.model_fields:
            raise SettingsError(f"{where}: unknown key {key!r}{nearest(key, Settings.model_fields)}")
    for key, value in _numbers(values):
        if isinstance(value, bool):  # Python takes true for 1
            raise SettingsError(f"{where}: {key} = {str(value).lower()} must be a number")
    if "models" in values:
        values = {**values, "models": _models(values["models"], where)}
    try:
        return Settings.model_validate(dict(values))
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        shown = repr(first["input"])
        shown = shown if len(shown) <= SHOWN else f"{shown[:SHOWN]}…"
        raise SettingsError(f"{where}: {key} = {shown} {_must(first['msg'])}") from None


def nearest(word: str, known: Iterable[str]) -> str:
    """``; did you mean 'x'?`` where a known word is near, else what there is to choose from."""
    names = sorted(known)
    near = difflib.get_close_matches(word, names, n=1, cutoff=0.6)
    return f"; did you mean {near[0]!r}?" if near else f"; known: {', '.join(names)}"


def _named_models(wanted: Any, configured: Any) -> list[Any]:
    """What was named outright; one that the file describes, as the file does."""
    tables = configured if isinstance(configured, list) else []
    known = {each["name"]: each for each in tables if isinstance(each, dict) and "name" in each}
    return [known.get(each, each) if isinstance(each, str) else each for each in wanted]


def _models(values: Any, where: str) -> tuple[ModelSettings, ...]:
    """Models from tables, or from texts as the command line takes them.

    Raises:
        SettingsError: one that cannot be meant, or two of one name.
    """
    if not isinstance(values, list | tuple):
        raise SettingsError(f"{where}: models must be a list: write [[models]] over each one's settings")
    found: dict[str, ModelSettings] = {}
    for value in values:
        model = _model(value, where)
        if model.name in found:
            raise SettingsError(
                f"{where}: two models are named {model.name!r}: their costs could not be told apart"
            )
        found[model.name] = model
    return tuple(found.values())


def _model(value: Any, where: str) -> ModelSettings:
    known = {each.name for each in fields(ModelSettings)}
    try:
        if isinstance(value, ModelSettings):
            return value
        if isinstance(value, str):
            return ModelSettings.parse(value)
        if not isinstance(value, Mapping):
            raise SettingsError(f"{where}: a model is a table of settings, not {str(value)[:SHOWN]!r}")
        for key in value:
            if key not in known:
                raise SettingsError(f"{where}: models: unknown key {key!r}{nearest(key, known)}")
            if isinstance(value[key], bool) and key != "tools":
                raise SettingsError(f"{where}: models: {key} is no yes or no")
        if "url" not in value and "key_env" not in value:
            value = {**value, "key_env": OPENAI_KEY}
        return TypeAdapter(ModelSettings).validate_python({"name": "", **value})
    except BadModel as why:
        raise SettingsError(f"{where}: {why}") from None
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        raise SettingsError(f"{where}: models: {key} {_must(first['msg'])}") from None


def _numbers(values: Mapping[str, Any]) -> list[tuple[str, object]]:
    """Each value by its key; those of ``weights`` by keys of their own."""
    weights = values.get("weights")
    inner = weights.items() if isinstance(weights, Mapping) else ()
    return [*values.items(), *((f"weights.{name}", value) for name, value in inner)]


def _must(message: str) -> str:
    """Pydantic's words as the end of a sentence."""
    return message.replace("Input should be", "must be").replace("Input should", "must")


def _read(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(read_text(file))
    except OSError as error:
        raise SettingsError(
            f"settings file {file} cannot be read: {error.strerror}; check the path"
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"settings file {file} is not TOML: {error}") from None
