from __future__ import annotations

from pathlib import Path

import pytest

from evo.settings import Settings, SettingsError, checked, settings


def written(folder: Path, text: str) -> Path:
    file = folder / "settings.toml"
    file.write_text(text)
    return file


def test_an_unknown_key_is_refused_with_the_nearest_known_one(tmp_path: Path) -> None:
    file = written(tmp_path, "evalutions = 5\n")
    with pytest.raises(
        SettingsError, match=r"settings\.toml: unknown key 'evalutions'; did you mean 'evaluations'\?"
    ):
        settings(file=file)


@pytest.mark.parametrize("budget", ["evaluations", "minutes", "usd", "tokens"])
@pytest.mark.parametrize("amount", [0, -3])
def test_a_budget_of_zero_or_less_is_refused(budget: str, amount: int) -> None:
    with pytest.raises(SettingsError, match=f"{budget} = {amount} must be greater than 0"):
        checked({budget: amount}, "here")


@pytest.mark.parametrize("text", ["evaluations = true", "minutes = false", "weights = {tune = true}"])
def test_a_boolean_is_no_number(text: str, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"[a-z.]+ = (true|false) must be a number"):
        settings(file=written(tmp_path, text))


@pytest.mark.parametrize("number", ["1e400", "1" + 400 * "0"])
def test_a_number_beyond_all_floats_is_refused_in_a_short_line(number: str, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="minutes = ") as refused:
        settings(file=written(tmp_path, f"minutes = {number}"))
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize("minutes", [float("nan"), float("inf")])
def test_a_budget_that_is_no_number_is_refused(minutes: float) -> None:
    with pytest.raises(SettingsError, match="minutes"):
        settings(minutes=minutes)


def test_a_file_that_is_not_toml_is_named(tmp_path: Path) -> None:
    file = written(tmp_path, "evaluations: 5\n")
    with pytest.raises(SettingsError, match=r"settings\.toml is not TOML"):
        settings(file=file)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"nowhere\.toml cannot be read: No such file"):
        settings(file=tmp_path / "nowhere.toml")


def test_naming_one_budget_drops_the_presets_other_one() -> None:
    assert settings("quick").minutes is not None
    assert settings("quick", evaluations=500).minutes is None


def test_a_budget_on_the_command_line_replaces_the_files(tmp_path: Path) -> None:
    chosen = settings(file=written(tmp_path, "minutes = 5\npopulation = 7\n"), evaluations=9)
    assert (chosen.minutes, chosen.evaluations, chosen.population) == (None, 9, 7)


def test_a_cap_on_what_models_cost_keeps_the_presets_time() -> None:
    assert settings("quick", usd=5.0).minutes == settings("quick").minutes


def test_an_unknown_control_names_the_known_ones() -> None:
    with pytest.raises(SettingsError, match="control = 'best' must be 'best-of-n', 'random-parent'"):
        settings(control="best")


def test_an_unknown_effort_names_the_known_ones() -> None:
    with pytest.raises(SettingsError, match="quick, full"):
        settings("slow")


def test_settings_survive_the_log() -> None:
    chosen = settings(weights={"unroll": 2.0}, evaluations=4)
    assert Settings.model_validate(chosen.model_dump(mode="json")) == chosen


MODEL = '[[models]]\nname = "small"\nurl = "http://127.0.0.1:8000/v1"\n'


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('models = "small"\n', r"models must be a list"),
        ("models = [3]\n", r"a model is a table of settings, not '3'"),
        (f"{MODEL}prize_in = 1\n", r"models: unknown key 'prize_in'; did you mean 'price_in'\?"),
        (f"{MODEL}parallel = true\n", r"models: parallel is no yes or no"),
        (f'{MODEL}context = "wide"\n', r"models: context must be a valid integer"),
        (f"{MODEL}price_in = 1\n", r"give both price_in and price_out"),
        (f"{MODEL}{MODEL}", r"two models are named 'small'"),
        ('[[models]]\nurl = "http://127.0.0.1:8000/v1"\n', r"a model needs a name"),
    ],
)
def test_a_model_that_cannot_be_meant_is_refused_in_a_line(text: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=rf"settings\.toml: {why}|settings\.toml: model .*{why}"):
        settings(file=written(tmp_path, text))


def test_a_name_on_the_command_line_is_the_model_that_the_file_describes(tmp_path: Path) -> None:
    file = written(tmp_path, f'{MODEL}parallel = 7\n[[models]]\nname = "gpt-5"\n')
    assert [model.name for model in settings(file=file).models] == ["small", "gpt-5"]
    small, other = settings(file=file, models=["small", "other@http://127.0.0.1:9000/v1"]).models
    assert (small.parallel, small.key_env, other.url) == (7, None, "http://127.0.0.1:9000/v1")
    assert settings(file=file, models=["gpt-5"]).models[0].key_env == "OPENAI_API_KEY"
    assert settings(file=file).models == checked(settings(file=file).model_dump(mode="json"), "here").models
