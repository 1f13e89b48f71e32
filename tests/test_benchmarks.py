"""The benchmarks run as programs and print what they promise; the steps that they compare are the same step."""

import json
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path

import numpy as np
import pytest
import torch

from paretoda.bench.suites import SUITES

torch.set_num_threads(1)

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


def _run(script, *arguments):
    done = subprocess.run(
        [sys.executable, BENCHMARKS / script, *arguments, "--json"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def importable(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))


def test_the_programme_benchmark_has_a_row_for_every_solver():
    found = _run("linear_program.py", "--problems", "20", "--sizes", "2", "3")
    for form in ("bal", "dom"):
        part = found["forms"][form]
        assert {"ours", "scipy HiGHS", "scipy HiGHS, scaled"} <= set(part["ratios"])
        assert all(set(row) == {"2", "3"} for row in part["ratios"].values())
        assert all(sum(row.values()) == 40 for row in part["agreement"].values())
        assert part["agreement"]["ours"]["ok"] == 40


def test_the_step_benchmark_has_a_row_for_every_variant():
    found = _run(
        "step.py", "--network", "cnn", "--size", "32", "--batch", "4", "--repeats", "1", "--threads", "1", "--no-memory"
    )
    result = found["networks"]["cnn"]
    names = [row["name"] for row in result["rows"]]
    assert {"plain", "naive", "exact, joint", "exact, per-domain", "every 5", "last"} <= set(names)
    assert result["rows"][0]["ratio"] == 1.0
    assert all(0 < row["low"] <= row["ratio"] <= row["high"] for row in result["rows"])
    assert result["gram_and_programme"] > 0


def test_the_sorting_benchmark_compares_with_the_plain_formula():
    found = _run("sliced_wasserstein.py", "--points", "64", "--directions", "4", "--rounds", "1")
    assert found["ratios"]["plain"] == 1
    assert found["ratios"]["ours"] > 0


@pytest.fixture
def features(tmp_path):
    """Two domains of features that are easy to tell apart by their classes, as .npz files."""
    generator = np.random.default_rng(0)
    paths = []
    for name, shift in (("source", 0.0), ("target", 0.5)):
        y = np.arange(160) % 2
        x = (generator.normal(size=(160, 6)) + 4 * y[:, None] + shift).astype(np.float32)
        paths.append(tmp_path / f"{name}.npz")
        np.savez(paths[-1], x=x, y=y, classes=np.array(["one", "two"]))
    return [str(path) for path in paths]


def test_the_whole_command_is_compared_with_the_hand_written_loop(features):
    source, target = features
    options = ("--steps", "10", "--rounds", "1", "--members", "2", "--no-neighbour")
    found = _run("command.py", "--source", source, "--target", target, *options)
    assert set(found["ratios"]) == {"one network", "2 members"}
    assert all(row["cpu"] > 0 and row["wall"] > 0 for row in found["ratios"].values())
    assert {"imports", "steps", "candidates", "files and page", "the rest"} <= set(found["parts"]["one network"])
    assert found["first step"]["one network"] > 0


def test_batched_members_learn_what_members_in_turn_learn():
    found = _run("batched_members.py", "--members", "2", "--inputs", "8", "--rounds", "1")
    assert found["difference"] < 1e-6
    assert found["low"] > 0


def test_regrets_are_differences_to_the_best_candidate(tmp_path):
    from paretoda.bench.store import Store
    from paretoda.evaluation.joint_validators import JOINT_VALIDATORS
    from paretoda.evaluation.validators import VALIDATORS

    def candidate(step, accuracy, im, other):
        scores = dict.fromkeys([*VALIDATORS, *JOINT_VALIDATORS], other) | {"im": im}
        return {"step": step, "oracle_accuracy": accuracy, "scores": scores}

    early = [candidate(1, 0.9, 1.0, 0.0), candidate(2, 0.6, 0.0, 1.0), candidate(3, 0.8, 0.5, 0.5)]
    late = [candidate(1, 0.5, 1.0, 0.0), candidate(2, 0.6, 0.0, 1.0)]
    store = Store(tmp_path)
    store.add({"key": "a", "name": "one", "candidates": early})
    store.add({"key": "b", "name": "two", "candidates": late})
    store.add({"key": "c", "name": "two", "error": "died"})
    found = _run("regrets.py", str(tmp_path))
    assert found["runs"] == 2
    assert found["regrets"]["today"]["last"] == pytest.approx({"mean": 5, "worst": 10, "one": 10, "two": 0})
    assert found["regrets"]["validators"]["im"] == pytest.approx({"mean": 5, "worst": 10, "one": 0, "two": 10})
    assert found["regrets"]["validators"]["ensv"] == pytest.approx({"mean": 15, "worst": 30, "one": 30, "two": 0})
    assert found["regrets"]["pairs"]["im+ensv"]["mean"] == pytest.approx(5)  # all tie: the last
    assert "im+mixval+mano" in found["regrets"]["today"]
    assert not any(rule in found["regrets"]["pairs"] for rule in ("im+dev", "im+mixval"))


def test_selective_labels_have_a_row_for_every_number_of_components(tmp_path):
    (tmp_path / "pacs").mkdir()
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    for domain in ("art_painting", "cartoon"):
        x = 4 * np.eye(6)[y] + rng.normal(size=(60, 6))
        np.savez(tmp_path / "pacs" / f"{domain}-effnetlite0.npz", x=x, y=y)
    (found,) = _run("spl_components.py", "--data", str(tmp_path), "--tasks", "pacs A-C").values()
    assert list(found)[-2:] == ["256", "128 + 64 + 32"]
    assert min(found.values()) > 90


@pytest.mark.usefixtures("importable")
def test_sentences_with_clear_ratings_become_vectors_and_labels(tmp_path):
    import sentiment

    rows = "1\t3.0\tgood good day\n2\t-2.5\tbad bad day\n3\t0.2\tplain day\n"
    inner, outer = tmp_path / "hutto_ICWSM_2014.tar.gz", tmp_path / "vader.tar.gz"
    with tarfile.open(inner, "w:gz") as archive:
        for name in sentiment.FILES.values():
            (tmp_path / f"{name}_GroundTruth.txt").write_text(rows)
            archive.add(tmp_path / f"{name}_GroundTruth.txt", f"hutto/{name}_GroundTruth.txt")
    with tarfile.open(outer, "w:gz") as archive:
        archive.add(inner, f"vader/{inner.name}")
    out = tmp_path / "sentiment"
    given = [sys.executable, BENCHMARKS / "sentiment.py", "--archive", outer, "--out", out]
    said = subprocess.run(given, capture_output=True, text=True, check=True).stdout
    assert said.splitlines()[0] == "amazon: 2 sentences, 50 % positive"
    for part in SUITES["sentiment"].tasks["A-T"].source, SUITES["sentiment"].tasks["A-T"].target:
        with np.load(tmp_path / part.path) as file:
            assert sorted(file["y"]) == [0, 1]
            assert file["x"].shape[0] == 2
            assert file["classes"].tolist() == ["negative", "positive"]


@pytest.mark.slow
def test_the_peers_are_compared_with_the_hand_written_loop(features):
    ours = ("paretoda.adapt", "paretoda adapt")
    source, target = features
    arguments = ("--source", source, "--target", target, "--steps", "30", "--rounds", "1", "--only", *ours)
    found = _run("peers.py", *arguments)
    assert set(found["peers"]) == {"hand-written loop", *ours}
    assert not found["unavailable"]
    assert found["peers"]["hand-written loop"]["step"] == found["peers"]["hand-written loop"]["whole"] == 1
    assert all(row["accuracy"] > 0.9 for row in found["peers"].values())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("job", "name"), [("on_lightning.py", ""), ("on_skada.py", "skada"), ("on_pytorch_adapt.py", "pytorch-adapt")]
)
def test_the_job_of_a_peer_learns_and_times_every_step(features, tmp_path, job, name):
    python = BENCHMARKS.parent / "build" / "peers" / name / "bin" / "python" if name else Path(sys.executable)
    if not python.exists():
        pytest.skip(f"there is no environment of {name}: python benchmarks/peers.py makes it")
    command = [python, BENCHMARKS / "peer_jobs" / job, *features, "30", tmp_path / "out.npy"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["steps"] == 30
    assert told["step"] > 0
    assert np.mean(np.load(tmp_path / "out.npy") == np.load(features[1])["y"]) > 0.9


@pytest.mark.usefixtures("importable")
def test_a_peer_that_cannot_be_installed_is_named_with_its_reason(features, tmp_path, monkeypatch):
    import peers

    monkeypatch.setattr(peers, "ENVIRONMENTS", tmp_path / "environments")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    plan = peers.Plan(*map(Path, features), steps=20)
    found = peers.compare(plan, [peers.LOOP, "skada"], rounds=1)
    assert set(found["peers"]) == {peers.LOOP}
    assert "cannot be installed: ERROR: No matching distribution" in found["unavailable"]["skada"]


@pytest.mark.usefixtures("importable")
def test_memory_is_that_of_a_process_of_its_own():
    from memory import peak
    from networks import Setting

    floats = peak("naive", "cnn") / 4
    assert floats > 4 * Setting("cnn", 16, 2).dimension


@pytest.mark.usefixtures("importable")
@pytest.mark.parametrize("name", ["exact, joint", "torchjd"])
def test_steps_of_one_kind_find_the_same_gradient(name):
    from networks import Setting
    from steps import VARIANTS

    if not VARIANTS[name].installed:
        pytest.skip(f"{name} is not installed")

    def gradients(variant):
        setting = Setting("cnn", 32, 4)
        VARIANTS[variant].make(setting)()
        return [p.grad for group in setting.optimiser.param_groups for p in group["params"]]

    for ours, naive in zip(gradients(name), gradients("naive"), strict=True):
        torch.testing.assert_close(ours, naive, rtol=1e-3, atol=1e-5)


@pytest.mark.usefixtures("importable")
def test_the_rational_optimum_is_that_of_highs():
    from exact_program import optimum
    from programmes import FORMS, programmes
    from solvers import SOLVERS

    for form in FORMS:
        for size in (1, 2, 5):
            for _, programme in programmes(form, size, 18, seed=3):
                best = optimum(programme.objective, programme.rows, programme.bounds)
                weights = SOLVERS["scipy HiGHS, scaled"](programme)
                assert (best is None) == (weights is None)
                if weights is not None:
                    scale = np.abs(programme.objective).max()
                    assert programme.objective @ weights == pytest.approx(best, abs=1e-6 * scale)


def test_the_plan_of_communication_counts_rows_as_they_are_sent():
    for objectives in (2, 3, 5):
        ways = _run("communication.py", "--objectives", str(objectives), "--processes", "64")["ways"]
        plain = ways["plain DANN"]["gradients_mb"]
        assert ways["exact"]["gradients_mb"] == pytest.approx((objectives + 1) * plain)
        assert ways["exact, sharded"]["gradients_mb"] == pytest.approx((objectives + 2) / 2 * plain)
        assert ways["last"]["gradients_mb"] == pytest.approx(plain, rel=0.1)
        assert all(0 < way["efficiency_without_overlap"] <= way["efficiency"] < 1 for way in ways.values())


@pytest.mark.slow
def test_large_folders_are_opened_in_every_way_and_removed(tmp_path):
    found = _run("data.py", "start", "--counts", "2000", "--scratch", str(tmp_path))["counts"]["2000"]
    assert {row["files"] for row in found.values()} == {2000}
    assert found["file list"]["kept_mb"] < 0.1
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_curves_write_a_table_and_a_picture(tmp_path):
    command = [sys.executable, BENCHMARKS / "curves.py", "--axes", "K", "--rounds", "1", "--out", tmp_path / "curves"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert len((tmp_path / "curves.csv").read_text().splitlines()) == 1 + 4 * 3
    assert "</svg>" in (tmp_path / "curves.svg").read_text()


def test_the_frequencies_of_the_explanation_are_those_of_the_labels(shared_data):
    found = _run("scene_frequencies.py", "--data", str(shared_data), "--suites", "camvid-dusk")["day-dusk"]
    for domain in ("source", "target"):
        assert sum(found[domain]) == pytest.approx(1)
    assert found["distance"] == pytest.approx(np.abs(np.subtract(found["source"], found["target"])).sum() / 2)
    contenders = tomllib.loads((BENCHMARKS / "contenders" / "segmentation-frequencies.toml").read_text())
    (row,) = contenders.values()
    (option,) = [option for option in row["options"] if option.startswith("target.prior=")]
    told = json.loads(option.removeprefix("target.prior="))
    assert np.allclose(told, found["target over root of source"], atol=6e-5)


def test_the_estimates_of_frequencies_are_compared_with_the_truth():
    (row,) = _run("frequency_estimates.py", "--suites", "driving", "--steps", "2", "--weights", "0")
    assert 0.005 < row["source"] < 0.05  # the same streets but for chance
    assert all(0 <= row[key] <= 1 for key in row if key not in ("task", "weight", "seed"))
    strengths = [row[key] for key in row if key.startswith("strength")]
    assert len(strengths) == 5
    assert len(set(strengths)) == 5
