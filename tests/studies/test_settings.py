"""The user's settings in a study: below its own, part of each run's identity, refused where they cannot count."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paretoda.bench.contenders import Contender, RunSpec
from paretoda.errors import BackboneError, DataError, SettingsError
from paretoda.studies import backbones, front, path
from paretoda.studies.catalogue import make_study
from paretoda.studies.request import StudyRequest
from paretoda.studies.settings import merge_settings

USER: dict[str, Any] = {"steps": 7, "lr": 0.03, "guide": "im", "batch_size": 16, "bottleneck": 32, "average": 0.5}
OWN: dict[str, Any] = {"guide": "tcm", "lr": 0.2, "average": 0.0, "voting": "all", "scheme": "epo", "bottleneck": 64}
MAIN = {"method": "dann", "target_loss": "tcm"}
REFUSED = {
    ("path", "select", "im"): "sets --select itself in every run; leave out --select",
    ("front", "dropout", 0.3): "sets --dropout itself",
    ("ablation", "method", "cdan"): "sets --method itself",
    ("backbones", "backbone", "cnn"): "sets --backbone itself",
    ("backbones", "backbone_weights", "none"): "sets --backbone itself in every run; leave out --backbone-weights",
    ("scales", "members", 3): "each loss of one network on whole images; leave out --members",
    ("guides", "joined", True): "leave out --joined",
    ("path", "crops", 10): "leave out --crops",
    ("path", "loss_weights", (1.0, 1.0, 1.0)): "loss_weights are for the scheme 'linear'",
    ("path", "frozen", True): "a frozen backbone needs weights",
    ("path", "skip_everything", True): "there is no setting 'skip_everything'",
}


def ask(directory: Path, **changes: Any) -> StudyRequest:
    return StudyRequest(**{"directory": directory, "suite": "digits", "seeds": 1, **changes})


def some(table: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.sets(st.sampled_from(sorted(table))).map(lambda names: {name: table[name] for name in sorted(names)})


@given(some(USER), some(OWN), some({"steps": 300, "lr": 0.5, "weight_decay": 0.1}))
def test_the_study_wins_over_the_user_and_the_user_over_defaults(
    user: dict[str, Any], own: dict[str, Any], default: dict[str, Any]
) -> None:
    found = merge_settings(ask(Path(), settings=user), "digits", {**MAIN, **own}, default)
    assert found == {"scheme": "paretoda", **default, **user, **MAIN, **own}


def test_options_of_the_user_and_of_the_study_add_up() -> None:
    request = ask(Path(), settings={"options": ("target.width=32", "scheme.lean=2")})
    assert merge_settings(request, "digits", {**MAIN, "options": ["scheme.lean=0"]})["options"] == [
        "target.width=32",
        "scheme.lean=2",
        "scheme.lean=0",
    ]


def test_a_preset_is_below_both_and_above_defaults() -> None:
    request = ask(Path(), settings={"preset": "paper", "lr": 0.01})
    found = merge_settings(request, "digits", {**MAIN, "scheme": "linear"}, {"steps": 300, "dropout": 0.1})
    assert (found["lr"], found["scheme"], found["steps"], found["batch_size"]) == (0.01, "linear", 30000, 32)
    assert found["dropout"] == 0.1
    assert "alignment.hidden=1024" in found["options"]


def test_runs_with_other_settings_have_other_keys_and_those_without_keep_theirs() -> None:
    trial = front._make_trials(ask(Path()), "printed-handwritten")[0]

    def key(**settings: Any) -> str:
        merged = merge_settings(ask(Path(), settings=settings), "digits", trial.settings, {"steps": front.STEPS})
        spec = RunSpec("digits", trial.task, Contender("", merged), 0)
        assert spec.settings == merged
        return replace(trial, settings=merged).key

    assert key() == replace(trial, settings={**trial.settings, "steps": front.STEPS}).key
    assert len({key(), key(steps=5), key(lr=0.1), key(image_size=16), key(backbone_weights="none")}) == 5
    assert key(lr=1) == key(lr=1.0)
    assert key(steps=front.STEPS) == key()


def test_a_study_with_other_settings_in_the_same_directory_mixes_nothing(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(path, "PATHS", {name: path.PATHS[name] for name in ("sum", path.IDEAL)})
    first = make_study("path", ask(tmp_path, settings={"steps": 2}), "")
    other = make_study("path", ask(tmp_path, settings={"steps": 2, "bottleneck": 8, "skip_bad": True}), "")
    again = make_study("path", ask(tmp_path, settings={"steps": 2}), "")
    lines = [json.loads(line) for line in (tmp_path / "runs.jsonl").read_text().splitlines()]
    assert [line["settings"].get("bottleneck") for line in lines] == [None, None, 8, 8]
    assert not first.failures
    assert first.sections == again.sections
    assert first.sections[0] != other.sections[0]
    assert other.facts["settings"] == "steps 2, bottleneck 8, skip_bad True"


@pytest.mark.parametrize(("case", "sentence"), REFUSED.items(), ids=lambda case: "-".join(map(str, case[:2])))
def test_what_a_study_cannot_use_is_refused_before_the_first_run(
    tmp_path: Path, case: tuple[str, str, Any], sentence: str
) -> None:
    study, name, value = case
    with pytest.raises((SettingsError, BackboneError), match=sentence):
        make_study(study, ask(tmp_path, settings={name: value}), "")
    assert not (tmp_path / "runs.jsonl").exists()


def test_what_does_not_fit_the_suite_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="studies are of classification, and driving is of segmentation"):
        make_study("path", ask(tmp_path, suite="driving"), "")
    with pytest.raises(SettingsError, match="pacs has stored features, which no backbone reads; leave out --frozen"):
        make_study("ablation", ask(tmp_path, suite="pacs", settings={"frozen": True}), "")
    with pytest.raises(BackboneError, match=r"no file of weights at .*nowhere\.pth; correct --backbone-weights"):
        make_study("path", ask(tmp_path, settings={"backbone": "cnn", "backbone_weights": "nowhere.pth"}), "")
    with pytest.raises(DataError, match="has no domain of office31"):
        make_study("path", ask(tmp_path, suite="office31", data=tmp_path), "")


def test_networks_of_photographs_have_their_own_sizes_unless_the_user_gives_one() -> None:
    request = ask(Path(), suite="office31-jpeg")
    found = backbones.choose_networks(request)["office31-jpeg"]
    assert [own["image_size"] for own in found.values()] == [224, 240, 260]
    assert [own.get("backbone_weights") for own in found.values()] == [None, "default", "default"]  # Lite0: the suite's
    for own in found.values():
        size = backbones.find_backbone(own["backbone"]).size
        assert size in (None, own["image_size"])
    fixed = backbones.choose_networks(replace(request, settings={"image_size": 64}))["office31-jpeg"]
    assert [
        merge_settings(replace(request, settings={"image_size": 64}), "office31-jpeg", own)["image_size"]
        for own in fixed.values()
    ] == [64, 64, 64]
    trained = backbones.choose_networks(replace(request, suite="office31"))["office31"]
    assert {own["backbone_weights"] for own in trained.values()} == {"default"}
    assert backbones.choose_networks(replace(request, suite="digits"))["digits"] == backbones.SMALL
