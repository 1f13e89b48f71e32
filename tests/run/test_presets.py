"""A preset is the settings that it stands for, below everything that is given beside it."""

import itertools

import pytest
import torch
from cli.processes import SMALL as FLAGS
from cli.processes import Inside

from paretoda.api import adapt
from paretoda.bench.suites import SUITES
from paretoda.cli.adapt import merge_settings
from paretoda.data import make_pair, open_samples
from paretoda.errors import SettingsError
from paretoda.io.toml import read_toml
from paretoda.models.classifier import make_model
from paretoda.objectives import ALIGNMENTS
from paretoda.run.build import build_step, make_scheme
from paretoda.run.presets import DEFAULT_METHOD, DEFAULT_TASK, choose_suite_form, read_presets
from paretoda.run.settings import Settings
from paretoda.tasks import find_task
from paretoda.tasks.classification.build import make_objectives, make_optimiser
from paretoda.tasks.loading import load_run
from paretoda.tasks.settings import make_settings

FORMS = [
    form
    for name, preset in read_presets().items()
    for form in (name, *(f"{name}/{suite}" for suite in preset.get("suites", {})))
]


def named(preset):
    """All methods and losses that a preset, or its form for a suite, names."""
    tables = [preset, *preset.get("suites", {}).values()]
    return {key for table in tables for key in table.get("methods", {})} | {"dann", "source-only", "mdd+tcm"}


@pytest.mark.parametrize("form", FORMS)
def test_every_preset_makes_a_run_of_every_method_that_it_names(form):
    preset = read_presets()[form.partition("/")[0]]
    for method in [None, *sorted(named(preset))]:
        settings = make_settings({"preset": form, **({} if method is None else {"method": method})})
        make_objectives(settings, 16, torch.full((3,), 1 / 3))  # an option that a part does not have is refused there
        make_scheme(settings)
    assert not {*preset} - {"about", "settings", "losses", "methods", "suites", "tasks"}


def test_the_papers_own_preset():
    made = make_settings({"preset": "paper"})
    assert (made.method, made.target_loss, made.scheme, made.guide) == ("dann", "tcm", "paretoda-paper", "tcm")
    assert (made.lr, made.momentum, made.weight_decay, made.held_out) == (0.03, 0.9, 1e-4, 0.1)
    assert made.part_options["alignment"] == {"hidden": 1024}
    assert made.part_options["target"] == {"width": 1024}


def test_the_papers_rate_is_that_of_the_pretrained_network_and_new_layers_have_ten_times_as_much():
    """ "train other layers from the scratch with learning rate 10 times that of the feature generator layers"."""
    model = make_model("resnet18", (3, 32, 32), classes=3, bottleneck=8)
    model.pretrained = True
    for given in ({"preset": "paper"}, SUITES["office31"].tasks["A-W"].settings):
        groups = make_optimiser(make_settings(given), model, {}, default_lr=1.0).param_groups
        rates = {group["name"]: group["lr"] for group in groups}
        assert rates == pytest.approx({"backbone": 0.003, "new": 0.03})


def test_the_papers_preset_of_segmentation():
    made = make_settings({"preset": "paper", "task": "segmentation"})
    assert (made.method, made.target_loss, made.scheme, made.guide) == ("advent", "tcm", "paretoda-paper", "tcm")
    assert (made.lr, made.momentum, made.weight_decay, made.held_out) == (2.5e-4, 0.9, 1e-4, 0.1)
    assert (made.backbone, made.levels, made.schedule) == ("deeplab-resnet101", 2, "poly")
    assert made.part_options["target"] == {"prior": "uniform"}, "Eq. 5 has no prior"
    assert SUITES["gta5-cityscapes"].tasks["GTA5-Cityscapes"].settings["weight_decay"] == 1e-4
    clan = make_settings({"preset": "paper", "task": "segmentation", "method": "clan", "target_loss": "none"})
    assert (clan.levels, clan.part_options["target"], clan.weight_decay) == (1, {}, 1e-4)
    with pytest.raises(SettingsError, match="the preset 'tll' has no settings for --task segmentation"):
        make_settings({"preset": "tll", "task": "segmentation"})
    with pytest.raises(SettingsError, match="did you mean 'segmentation'"):
        make_settings({"preset": "paper", "task": "segmentatoin"})


def test_what_is_given_counts_more_and_options_add_up():
    given = {"preset": "paper", "lr": 0.5, "method": "mdd"}
    made = make_settings({**given, "options": ["alignment.margin=2"]})
    assert (made.lr, made.method, made.weight_decay) == (0.5, "mdd", 1e-4)
    assert made.part_options["target"] == {"width": 1024}
    assert made.part_options["alignment"] == {"margin": 2}, "MDD has other options than the preset's DANN"
    assert make_settings({**given, "options": ["target.width=64"]}).part_options["target"] == {"width": 64}


@pytest.mark.parametrize("preset", read_presets())
def test_the_source_alone_stays_alone(preset):
    made = make_settings({"preset": preset, "method": "source-only"})
    assert (made.target_loss, made.scheme) == ("none", "linear")


def test_each_method_has_the_settings_of_its_script():
    tll = {method: make_settings({"preset": "tll", "method": method}) for method in ("dann", "dan", "mdd", "mcd")}
    assert [made.lr for made in tll.values()] == [0.01, 0.003, 0.004, 0.001]
    assert [made.steps for made in tll.values()] == [20_000, 10_000, 20_000, 10_000]
    assert [made.decay for made in tll.values()][:3] == [20, 3, 4]
    assert [made.schedule for made in tll.values()] == ["inverse", "inverse", "inverse", "constant"]
    assert make_settings({"preset": "tll", "method": "source-only+mcc"}).bottleneck == 1024
    assert make_settings({"preset": "tll", "method": "source-only"}).steps == 2500
    bnm = make_settings({"preset": "tll", "method": "source-only+bnm"})
    assert (bnm.lr, bnm.steps) == (0.01, 20_000), "it has no script there; the source's alone is no match for it"
    both = make_settings({"preset": "tll", "method": "dann+bsp"}).part_options
    assert (both["alignment"], both["target"]) == ({"hidden": 1024}, {"strength": 2e-4})


def test_a_suite_has_a_form_of_its_own_where_the_codes_differ():
    assert choose_suite_form({"preset": "tll", "lr": 1}, "office-home") == {"preset": "tll/office-home", "lr": 1}
    assert choose_suite_form({"preset": "tll"}, "office31") == {"preset": "tll"}
    assert choose_suite_form({"lr": 1}, "office-home") == {"lr": 1}
    home = make_settings({"preset": "tll/office-home", "method": "mdd"})
    assert (home.steps, home.decay, home.bottleneck) == (30_000, 6, 2048)
    assert home.part_options["alignment"] == {"hidden": 2048}
    assert make_settings({"preset": "tll/office-home", "method": "dan"}).steps == 10_000, "as on Office-31"
    mcd = make_settings({"preset": "tll/visda2017", "method": "mcd"}).part_options["alignment"]
    assert mcd == {"hidden": 1024, "strength": 1, "encoder_updates": 4}


@pytest.mark.parametrize(
    ("name", "said"),
    [("papr", "did you mean 'paper'?"), ("tll/office31", "in the preset 'tll': 'office31'"), ("x", "choose from")],
)
def test_an_unknown_preset_is_told(name, said):
    with pytest.raises(SettingsError, match=said.replace("?", r"\?")):
        make_settings({"preset": name})


def test_nobody_names_a_method():
    assert Settings.model_fields["task"].default == DEFAULT_TASK
    assert Settings.model_fields["method"].default == DEFAULT_METHOD
    assert make_settings({"preset": "tll"}).part_options["alignment"] == {"hidden": 1024}
    assert {*itertools.chain(*(preset.get("methods", {}) for preset in read_presets().values()))} <= {
        *ALIGNMENTS,
        "source-only+none",
        "source-only+mcc",
        "dann+bsp",
        "cdan-e+bsp",
    }


def test_decay_decides_where_the_learning_rate_ends(arrays):
    x, y, target, _ = arrays
    for decay in (0.0, 10.0, 30.0):
        settings = make_settings({"method": "source-only", "decay": decay, "lr": 0.2, "bottleneck": 8})
        step = build_step(find_task(settings.task), settings, make_pair((x, y), target), torch.device("cpu"))
        step.advance(1.0)
        assert step.optimiser.param_groups[0]["lr"] == pytest.approx(0.2 * (1 + decay) ** -0.75)


def test_config_toml_has_what_the_preset_stands_for_and_repeats_the_run(arrays, small, tmp_path):
    x, y, target, _ = arrays
    small = {**small, "steps": 4}
    tiny = ["alignment.hidden=8", "target.width=8"]
    run = adapt((x, y), target, tmp_path / "a", preset="paper", image_size=None, options=tiny, **small)
    written = read_toml(tmp_path / "a" / "config.toml")
    assert "preset" not in written
    assert (written["lr"], written["scheme"], written["steps"]) == (0.03, "paretoda-paper", 4)
    assert written["options"] == ["target.width=1024", "alignment.hidden=1024", *tiny]
    assert run.settings.weight_decay == 1e-4
    again = {key: value for key, value in written.items() if key not in ("source", "target")}
    adapt((x, y), target, tmp_path / "b", **again)
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in "ab"]
    assert weights[0] == weights[1]


def test_the_command_line_counts_before_its_preset_and_that_before_the_config_file(tmp_path):
    config = tmp_path / "my.toml"
    config.write_text('preset = "cdan"\nmethod = "mdd+im"\nlr = 0.7\nseed = 5\nbatch_size = 7\n')
    own = make_settings(merge_settings(config, {}, {"batch_size": 9}))
    assert (own.method, own.target_loss, own.lr, own.batch_size, own.steps) == ("mdd", "im", 0.7, 9, 50_004)
    above = make_settings(merge_settings(config, {}, {"preset": "paper", "batch_size": 9}))
    assert (above.method, above.target_loss, above.lr, above.batch_size, above.seed) == ("dann", "tcm", 0.03, 9, 5)
    scenes = tmp_path / "scenes.toml"
    scenes.write_text('task = "segmentation"\nmethod = "cbst"\nsize = "48x32"\n')
    filed = make_settings(merge_settings(scenes, {}, {"preset": "paper"}))
    assert (filed.method, filed.size, filed.backbone) == ("advent", "1024x512", "deeplab-resnet101")
    every = make_settings(merge_settings(config, {}, {"preset": "tll", "options": ("alignment.margin=3",)}))
    assert (every.method, every.target_loss, every.lr, every.bottleneck) == ("mdd", "none", 0.004, 1024)
    assert every.part_options["alignment"] == {"margin": 3}


def test_the_command_takes_it_and_lists_all(files, tmp_path, capfd):
    inside = Inside(capfd)
    given = ("adapt", "--source", files / "source.npz", "--target", files / "target.npz", "--out", tmp_path / "run")
    assert "did you mean 'paper'?" in inside(*given, "--preset", "papr").sentence
    assert "leave out --crops" in inside(*given, "--preset", "cdan").sentence
    end = inside(*given, "--preset", "mdd", *FLAGS, "--options", "alignment.hidden=8")
    assert end.code == 0, end.err
    assert (
        "leave out method (mdd, not cdan-e), options"
        in inside("adapt", "--out", tmp_path / "run", "--resume", "--preset", "cdan").sentence
    )
    written = read_toml(tmp_path / "run" / "config.toml")
    assert (written["method"], written["scheme"], written["steps"], written["lr"]) == ("mdd", "linear", 6, 0.004)
    listed = inside("list", "presets", "--json").last_line["presets"]
    assert [*listed] == [*read_presets()]
    assert "tll/visda2017" in listed["tll"]
    assert listed["paper"].endswith("Also for --task segmentation.")


@pytest.mark.parametrize(
    ("options", "given"),
    [
        (["target.detach=false"], {}),
        (["target.marginal=whole"], {}),
        (["target.paper_literal=true", "guide.paper_literal=true"], {}),
        ([], {"decay": 10.0, "head_losses": ["source"], "lr": 0.003}),
    ],
)
def test_other_readings_of_the_paper_can_be_run_and_change_the_model(arrays, small, tmp_path, options, given):
    x, y, target, _ = arrays
    tiny = ["alignment.hidden=8", "target.width=8"]
    same = {**small, "steps": 12, "refresh_every": 4, "preset": "paper", "image_size": None}
    plain = adapt((x, y), target, tmp_path / "plain", **same, options=tiny)
    other = adapt((x, y), target, tmp_path / "other", **same, options=[*tiny, *options], **given)
    weights = [(run.directory / "model.safetensors").read_bytes() for run in (plain, other)]
    assert weights[0] != weights[1]
    refined = other.predict_proba(target, refined=True)
    assert refined.sum(1) == pytest.approx(1, abs=1e-5)
    _, loaded = load_run(tmp_path / "other", torch.device("cpu"))
    samples = open_samples(target, labelled=False)
    assert loaded.probabilities(samples, refined=True) == pytest.approx(refined)
