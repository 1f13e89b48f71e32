"""The command line offers every setting, in the words of `Settings`."""

import inspect
import subprocess
import sys
import types
from typing import Literal, get_args, get_origin

import pytest

from paretoda.cli.adapt import adapt
from paretoda.cli.bench import bench
from paretoda.cli.errors import EXPECTED, INTERRUPTED
from paretoda.cli.options import read_settings
from paretoda.cli.study import study
from paretoda.run.settings import SETTINGS, TASK_SETTINGS, Setting, Settings, settings_of_others


def test_adapt_has_an_option_for_every_setting_in_the_same_order() -> None:
    options = [name for name in inspect.signature(adapt).parameters if name in SETTINGS]
    assert options == list(SETTINGS) == list(Settings.model_fields)


def test_bench_has_an_option_for_every_setting_that_it_does_not_decide_itself() -> None:
    left_out = set(SETTINGS) - set(inspect.signature(bench).parameters)
    assert left_out == {"method", "target_loss", "scheme", "lr", "seed", "reference"}


def test_study_has_an_option_for_every_setting_of_classification_that_it_does_not_decide_itself() -> None:
    left_out = set(SETTINGS) - settings_of_others("classification") - set(inspect.signature(study).parameters)
    decided = {"from_run", "method", "target_loss", "scheme", "seed", "reference", "checkpoint_every", "track"}
    assert left_out == decided  # its --task names tasks of the suite
    assert (
        inspect.signature(study).parameters["task"].annotation != inspect.signature(adapt).parameters["task"].annotation
    )


@pytest.mark.parametrize("setting", SETTINGS.values(), ids=lambda setting: setting.name)
def test_an_option_has_the_default_the_type_and_the_help_of_its_setting(setting: Setting) -> None:
    field = Settings.model_fields[setting.name]
    parameter = inspect.signature(adapt).parameters[setting.name]
    option = parameter.default
    assert setting.description == field.description == option.help
    assert option.param_decls[0].split("/")[0] == setting.option
    assert option.rich_help_panel == ("Settings" if setting.often else "Fine tuning")
    shown = not (field.default is None or field.default is False or field.default == ())
    assert option.show_default == (str(field.default) if shown else False)
    (kind,) = (part for part in get_args(parameter.annotation) if part is not types.NoneType)
    assert kind is str if get_origin(setting.kind) is tuple else kind == setting.kind
    assert kind in (str, int, float, bool) or get_origin(kind) is Literal


def test_a_setting_of_one_task_says_so() -> None:
    assert "bottleneck" in TASK_SETTINGS["classification"]
    assert "teachers" in TASK_SETTINGS["segmentation"]
    for name in (name for name, setting in SETTINGS.items() if setting.tasks == ("segmentation",)):
        assert SETTINGS[name].description.startswith("segmentation: ")
        assert not SETTINGS[name].arrays


def test_the_settings_are_declared_without_torch() -> None:
    code = "import sys, paretoda.run.settings; assert not {'torch', 'scipy', 'sklearn', 'numpy'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_what_is_left_out_is_not_passed_on_and_lists_are_split() -> None:
    given = {"steps": None, "frozen": False, "lr": 0.1, "loss_weights": "1, 0.5,2", "head_losses": None}
    assert read_settings(given) == {"frozen": False, "lr": 0.1, "loss_weights": ("1", "0.5", "2")}


def test_a_list_in_square_brackets_is_one_value_of_an_option() -> None:
    written = "target.prior=[0.7, 0.2,0.1],scheme.lean=2, target.x=[1],"
    found = read_settings({"options": written})["options"]
    assert found == ("target.prior=[0.7, 0.2,0.1]", "scheme.lean=2", "target.x=[1]")


@pytest.mark.parametrize("name", [*EXPECTED, INTERRUPTED])
def test_every_expected_error_exists(name: str) -> None:
    module, _, kind = name.rpartition(".")
    found = getattr(__import__(module, fromlist=[kind]), kind)
    assert issubclass(found, Exception)
    assert f"{found.__module__}.{found.__qualname__}" == name
