"""Ways to need less memory: what combines is trained, what does not is refused before anything is read."""

from functools import partial
from itertools import product

import pytest
import torch
from run.conftest import blobs
from run.memory_steps import SMALL, images, steps

from paretoda.api import adapt
from paretoda.errors import SettingsError
from paretoda.models.backbones.small import cnn
from paretoda.models.memory import NoCompilerError, compile_encoder
from paretoda.run import build as memory
from paretoda.run.callbacks import Callbacks
from paretoda.run.compatibility import CIRCUMSTANCES, REFUSED, WAYS, refusal, refuses
from paretoda.tasks.settings import make_settings

WAY = {
    "accumulate": {"accumulate": 3},
    "checkpoint-activations": {"checkpoint_activations": True},
    "compile": {"compile": True},
    "channels-last": {"channels_last": True},
    "precision bf16": {"precision": "bf16"},
    "precision 16": {"precision": "16"},
}
CIRCUMSTANCE = {
    "scheme linear": {"scheme": "linear"},
    "any other scheme, voting all": {"scheme": "paretoda"},
    "any other scheme, voting last": {"scheme": "paretoda", "voting": "last"},
    "scheme metaalign": {"scheme": "metaalign"},
    "scheme auxilearn": {"scheme": "auxilearn"},
    "scheme hypernetwork": {"scheme": "hypernetwork"},
    "scheme pga": {"scheme": "pga"},
    "feature data": {},
    "frozen": {"frozen": True},
    "task segmentation": {"task": "segmentation"},
}


def settings_of(row, way):
    found = {**CIRCUMSTANCE.get(row, WAY.get(row, {})), **WAY[way]}
    return {**found, "method": "advent", "bottleneck": 256} if "task" in found else found


def stored_weights(folder):
    """A backbone that can be frozen."""
    torch.save(cnn(1).state_dict(), folder / "cnn.pth")
    return {"backbone": "cnn", "backbone_weights": str(folder / "cnn.pth")}


CELLS = [(row, way) for row, way in product((*CIRCUMSTANCES, *WAYS[:4]), WAYS) if row != way]


def test_the_table_has_a_row_and_a_column_for_every_name_that_it_refuses():
    assert {name for pair in REFUSED for name in pair} <= {*CIRCUMSTANCES, *WAYS}
    assert set(WAY) == set(WAYS)
    assert set(CIRCUMSTANCE) == set(CIRCUMSTANCES)


@pytest.mark.parametrize(("row", "way"), [cell for cell in CELLS if refuses(*cell)])
def test_what_does_not_combine_is_refused_before_the_first_step(row, way):
    with pytest.raises(SettingsError, match=r"^[^\n]+; (leave out --|take --precision bf16 or 32)[^\n]*$"):
        steps(settings_of(row, way), 0, kind="features" if row == "feature data" else "images")


def test_settings_know_their_circumstances():
    names = make_settings({"accumulate": 2, "precision": "16", "scheme": "hypernetwork"}).circumstances
    assert names == {"accumulate", "precision 16", "scheme hypernetwork"}
    assert make_settings({"voting": "last"}).circumstances == {"any other scheme, voting last"}
    assert refusal(names) is None


RUN = [cell for cell in CELLS if not refuses(*cell) and cell[::-1] not in CELLS[: CELLS.index(cell)]]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
@pytest.mark.parametrize(("row", "way"), RUN)
def test_what_combines_trains_as_without_it(row, way, monkeypatch, tmp_path):
    """The losses of the first step are those of the plain run, but for rounding (and BatchNorm in micro-batches)."""
    import torch._dynamo.config as dynamo
    import torch._functorch.config as functorch

    monkeypatch.setenv("PARETODA_CACHE", str(tmp_path))
    monkeypatch.setattr(memory, "compile_encoder", partial(compile_encoder, backend="aot_eager"))
    kind = "features" if row == "feature data" else "images"
    settings = {**settings_of(row, way), "bn": "per-domain", **(stored_weights(tmp_path) if row == "frozen" else {})}
    plain = {k: v for k, v in settings.items() if k not in WAY[way] and k not in WAY.get(row, {})}
    with functorch.patch(donated_buffer=functorch.donated_buffer), dynamo.patch(recompile_limit=dynamo.recompile_limit):
        _, mine = steps(settings, kind=kind)
        torch.compiler.reset()
    _, theirs = steps(plain, kind=kind)
    exact = not {"accumulate", "precision bf16", "precision 16"} & {row, way}
    assert mine[0].losses == pytest.approx(theirs[0].losses, rel=1e-4 if exact else 0.5, abs=1e-5 if exact else 0.2)
    assert mine[0].finite or "precision 16" in (row, way)
    if exact:
        assert mine[1].losses == pytest.approx(theirs[1].losses, rel=1e-2, abs=1e-3)


def test_batchnorm_in_micro_batches_is_told_once():
    said = []
    x, y, t, _ = blobs(n=80)
    adapt((x, y), t, **SMALL, accumulate=2, callbacks=Callbacks(say=said.append))
    assert sum("--accumulate 2 is not exactly the whole batch of 8" in sentence for sentence in said) == 1


def test_micro_batches_must_have_something_in_them():
    with pytest.raises(
        SettingsError, match=r"^--accumulate 5 leaves micro-batches of less than 2 of 8 samples; take 4"
    ):
        make_settings({"accumulate": 5, "batch_size": 8})
    make_settings({"accumulate": 4, "batch_size": 8})
    make_settings({"task": "segmentation", "accumulate": 4})
    with pytest.raises(SettingsError, match=r"^--batch-size 1 is for --task segmentation; BatchNorm needs at least 2"):
        make_settings({"batch_size": 1})
    make_settings({"task": "segmentation", "batch_size": 1})


def test_channels_last_is_a_layout_and_nothing_else(tmp_path):
    settings = {**SMALL, "steps": 4, "method": "dann", "target_loss": "tcm", "guide": "tcm"}
    (x, y), (t, _) = images(), images(seed=1)
    plain = adapt((x, y), t, tmp_path / "plain", channels_last=False, **settings)
    last = adapt((x, y), t, tmp_path / "last", **settings)  # the default on a CPU
    for chosen, wanted in (({}, True), ({"channels_last": True}, True), ({"channels_last": False}, False)):
        step, _ = steps(chosen, 1)
        kernels = [p for p in step.model.parameters() if p.ndim == 4 and p.shape[1] > 1]
        assert kernels
        assert all(kernel.is_contiguous(memory_format=torch.channels_last) is wanted for kernel in kernels)
    one, two = plain.model.model.state_dict(), last.model.model.state_dict()
    assert list(one) == list(two)
    for name in one:
        assert torch.allclose(one[name].double(), two[name].double(), rtol=1e-3, atol=1e-5), name


def test_a_machine_that_cannot_compile_is_told_before_the_data_are_opened(monkeypatch, tmp_path):
    def broken():
        raise NoCompilerError("torch.compile does not work on this machine (no g++); leave out --compile")

    monkeypatch.setattr(memory, "check_compiler", broken)
    with pytest.raises(SettingsError, match="no g\\+\\+"):
        adapt(tmp_path / "nothing.npz", tmp_path / "nothing.npz", compile=True)
