"""The command line offers every setting, in the words of `Settings`."""

import types
from typing import Any, Literal, Union, get_args, get_origin

import pytest

from paretoda.cli.errors import EXPECTED, INTERRUPTED
from paretoda.cli.options import List, SETTINGS, Setting, given_settings
from paretoda.run.settings import Settings


def written(annotation: Any) -> Any:
    """What stands behind an option for a field of this type."""
    if get_origin(annotation) in (Union, types.UnionType):
        (annotation,) = [part for part in get_args(annotation) if part is not type(None)]
    return List if get_origin(annotation) is tuple else annotation


def test_options_and_settings_have_the_same_names_in_the_same_order() -> None:
    assert [setting.name for setting in SETTINGS] == list(Settings.model_fields)


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.name)
def test_an_option_has_the_default_the_type_and_the_help_of_its_setting(setting: Setting) -> None:
    field = Settings.model_fields[setting.name]
    assert setting.help == field.description
    assert setting.default == field.default
    assert type(setting.default) is type(field.default)
    assert setting.kind == written(field.annotation)
    assert setting.kind in (str, int, float, bool, List) or get_origin(setting.kind) is Literal


def test_what_is_left_out_is_not_passed_on_and_lists_are_split() -> None:
    given = {"steps": None, "frozen": False, "lr": 0.1, "loss_weights": "1, 0.5,2", "head_losses": None}
    assert given_settings(given) == {"frozen": False, "lr": 0.1, "loss_weights": ("1", "0.5", "2")}


def test_a_list_in_square_brackets_is_one_value_of_an_option() -> None:
    written = "target.prior=[0.7, 0.2,0.1],scheme.lean=2, target.x=[1],"
    found = given_settings({"options": written})["options"]
    assert found == ("target.prior=[0.7, 0.2,0.1]", "scheme.lean=2", "target.x=[1]")


@pytest.mark.parametrize("name", [*EXPECTED, INTERRUPTED])
def test_every_expected_error_exists(name: str) -> None:
    module, _, kind = name.rpartition(".")
    found = getattr(__import__(module, fromlist=[kind]), kind)
    assert issubclass(found, Exception)
    assert f"{found.__module__}.{found.__qualname__}" == name
