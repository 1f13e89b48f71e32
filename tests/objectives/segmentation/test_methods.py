"""What every objective of segmentation must be: finite, differentiable, private, and calm without labels."""

import inspect
from functools import partial

import numpy as np
import pytest
import torch
from objectives.samples import silent
from objectives.segmentation.scenes import Scenes

from paretoda.core.problem import add_offsets
from paretoda.objectives.segmentation import (
    SEGMENTATION_GUIDES,
    SEGMENTATION_METHODS,
    SEGMENTATION_SOURCE_LOSSES,
    SEGMENTATION_TARGET_LOSSES,
    AdaSegNet,
    AdvEnt,
    Cbst,
    Clan,
    MinEnt,
    PixelCrossEntropy,
    make_pixel_guide,
    make_pixel_method,
    make_pixel_target_loss,
)
from paretoda.objectives.segmentation.pixel_objective import AtPixels
from paretoda.types import Objective

TABLES = {
    "source": SEGMENTATION_SOURCE_LOSSES,
    "method": SEGMENTATION_METHODS,
    "target": SEGMENTATION_TARGET_LOSSES,
    "guide": SEGMENTATION_GUIDES,
}
VARIANTS = {
    "cross-entropy weighted": (partial(PixelCrossEntropy, weights=[1.0, 2.0, 0.5, 0.0]), "two levels"),
    "cross-entropy focal": (partial(PixelCrossEntropy, weights=[1.0, 2.0, 0.5, 0.0], focal=2.0), "two levels"),
    "cross-entropy both": (partial(PixelCrossEntropy, both=True), "two classifiers"),
    "adasegnet of two levels": (partial(AdaSegNet, levels=2), "two levels"),
    "adasegnet enlarged": (partial(AdaSegNet, enlarge=True), "one"),
    "adasegnet least squares": (partial(AdaSegNet, least_squares=True), "one"),
    "advent of two levels": (partial(AdvEnt, levels=2), "two levels"),
    "minent with ratios": (partial(MinEnt, ratios=[0.25] * 4, least=3.0), "two levels"),
    "clan enlarged": (partial(Clan, enlarge=True), "two classifiers"),
    "clan detached": (partial(Clan, detach=True), "two classifiers"),
    "cbst soft": (partial(Cbst, lrent=0.25), "one"),
    "cbst fda": (partial(Cbst, rule="fda"), "one"),
    "cbst global": (partial(Cbst, rule="global"), "one"),
    "cbst mirrored and smaller": (partial(Cbst, mirror=True, scale=0.9), "one"),
    "im running": (partial(SEGMENTATION_TARGET_LOSSES["im"], momentum=0.9), "one"),
    "tcm running": (partial(SEGMENTATION_TARGET_LOSSES["tcm"], momentum=0.9), "one"),
    "tcm with a floor": (partial(SEGMENTATION_TARGET_LOSSES["tcm"], floor=-4.0), "one"),
}
NAMES = [(kind, name) for kind, table in TABLES.items() for name, make in table.items() if make is not None]
EVERY = [*NAMES, *(("variant", name) for name in VARIANTS)]
each = pytest.mark.parametrize(("kind", "name"), EVERY, ids=[f"{kind}: {name}" for kind, name in EVERY])


def scenes_for(kind, name, **options):
    network = VARIANTS[name][1] if kind == "variant" else "two classifiers" if name == "clan" else "one"
    return Scenes(network, **options)


def build(kind, name, scenes):
    """The objective of that name, narrow, refreshed, in the middle of the training."""
    torch.manual_seed(0)
    make = VARIANTS[name][0] if kind == "variant" else TABLES[kind][name]
    shape = {"features": scenes.features, "classes": scenes.classes}
    if kind == "guide":
        loss = make_pixel_target_loss("tcm", **shape, options={"width": 8}).double() if name == "tcm" else None
        objective = make_pixel_guide(name, **shape, target_loss=loss).double()
    else:
        narrow = {option: 8 for option in ("hidden", "width") if option in inspect.signature(make).parameters}
        objective = make(**shape, **narrow).double()
    scenes.taught = objective.follows_teacher
    objective.advance(0.7)
    objective.refresh(scenes.snapshot())
    return objective


@each
@pytest.mark.parametrize("images", [1, 3])
def test_the_value_is_finite_and_its_gradient_reaches_the_encoder(kind, name, images):
    scenes = scenes_for(kind, name, images=images)
    objective = build(kind, name, scenes)
    source, target = scenes.batch()
    loss = objective(source, target)
    assert loss.shape == ()
    assert loss.isfinite()
    assert loss.item() >= 0 or name in {"mdd", "dann", "cdan", "cdan-e"}, "only an unfitted adversary says less"
    gradients = torch.autograd.grad(loss, scenes.body(), retain_graph=True)
    assert all(gradient.isfinite().all() for gradient in gradients)
    assert any(gradient.any() for gradient in gradients)
    own = [p for p in objective.parameters() if p.requires_grad]
    assert not own or silent(loss, own), "what the encoder lowers does not reach the objective's own networks"


@each
def test_the_private_loss_reaches_the_own_networks_only(kind, name):
    scenes = scenes_for(kind, name)
    objective = build(kind, name, scenes)
    loss = objective.private_loss(*scenes.batch())
    own = list(objective.parameters())
    if not own:
        assert loss is None
        return
    assert loss.isfinite()
    assert silent(loss, list(scenes.model.parameters()))
    assert all(g is not None for g in torch.autograd.grad(loss, own, allow_unused=True)), "every network learns"


@each
def test_a_source_without_a_label_is_no_trouble(kind, name):
    scenes = scenes_for(kind, name, images=1)
    objective = build(kind, name, scenes)
    source, target = scenes.unlabelled(), scenes.target()
    loss = objective(source, target)
    assert loss.isfinite()
    for gradient in torch.autograd.grad(loss, scenes.body(), retain_graph=True):
        assert gradient.isfinite().all()
    private = objective.private_loss(source, target)
    if private is not None:
        assert private.isfinite()
        for gradient in torch.autograd.grad(private, list(objective.parameters()), allow_unused=True):
            assert gradient is None or gradient.isfinite().all()


@each
def test_forward_changes_no_state_and_the_state_survives_a_round_trip(kind, name):
    scenes = scenes_for(kind, name)
    objective = build(kind, name, scenes)
    before = {key: value.clone() for key, value in objective.state_dict().items()}
    torch.manual_seed(1)
    loss = objective.eval()(*scenes.batch())
    for key, value in objective.state_dict().items():
        torch.testing.assert_close(value, before[key], rtol=0, atol=0)
    if name == "tcm" and kind == "guide":
        return  # its discriminators are in the target loss's state
    twin = build(kind, name, scenes_for(kind, name, seed=5)).eval()
    twin.load_state_dict(objective.state_dict())
    torch.manual_seed(1)
    assert twin(*scenes.batch()).item() == pytest.approx(loss.item())


@each
def test_a_guide_or_a_target_loss_without_labels_reads_no_source(kind, name):
    scenes = scenes_for(kind, name)
    if kind != "guide":
        return
    objective = build(kind, name, scenes).eval()
    values = []
    for source in (scenes.source(), scenes.unlabelled()):
        torch.manual_seed(3)
        values.append(objective(source, scenes.target()).item())
    assert values[0] == pytest.approx(values[1])
    assert values[0] > 0


def test_names_and_options_are_answered_with_the_nearest():
    shape = {"features": 4, "classes": 3}
    with pytest.raises(ValueError, match="there is no method 'adasegnt'; did you mean 'adasegnet'"):
        make_pixel_method("adasegnt", **shape)
    with pytest.raises(ValueError, match="'advent' has no option 'strenght'; did you mean 'strength'"):
        make_pixel_method("advent", **shape, options={"strenght": 1})
    with pytest.raises(ValueError, match="'tcm' has no option 'widht'; did you mean 'width'"):
        make_pixel_target_loss("tcm", **shape, options={"widht": 1})
    with pytest.raises(ValueError, match="'none' has no option 'most'"):
        make_pixel_target_loss("none", **shape, options={"most": 1})
    assert make_pixel_method("source-only", **shape) is None
    assert make_pixel_target_loss("none", **shape) is None


def test_options_reach_the_inner_objective():
    shape = {"features": 4, "classes": 3}
    made = make_pixel_target_loss("tcm", **shape, options={"width": 9, "most": 50})
    assert isinstance(made, AtPixels)
    assert (made.most, made.inner.width, made.inner.light) == (50, 9, True)
    assert make_pixel_target_loss("tcm", **shape).inner.width == 64
    assert make_pixel_method("cdan-e", **shape).inner.entropy
    assert make_pixel_method("crst", **shape).mrkld == 0.1
    assert make_pixel_method("swd", **shape, options={"encoder_updates": 3}).encoder_updates == 3
    with pytest.raises(ValueError, match="asks the discriminators of the target loss 'tcm'"):
        make_pixel_guide("tcm", **shape, target_loss=make_pixel_target_loss("im", **shape))


def test_every_entry_says_in_one_line_what_it_is():
    for kind, name in NAMES:
        make = TABLES[kind][name]
        line = ((make.func if isinstance(make, partial) else make).__doc__ or "").splitlines()[0]
        assert 20 < len(line) < 120, (kind, name)


def test_only_what_refreshes_inside_refreshes_outside():
    shape = {"features": 4, "classes": 3}
    assert make_pixel_guide("prototypes", **shape).refreshes
    assert not make_pixel_method("dann", **shape).refreshes
    assert Objective.refresh is not Cbst.refresh


@pytest.mark.parametrize(("kind", "name"), [pair for pair in EVERY if pair[0] != "guide"])
def test_what_schemes_of_loss_values_read_is_positive_in_every_phase(kind, name):
    scenes = scenes_for(kind, name)
    objective = build(kind, name, scenes)
    waiting = (VARIANTS[name][0] if kind == "variant" else TABLES[kind][name])(
        features=scenes.features, classes=scenes.classes
    ).double()
    for part, progress in ((waiting, 0.0), (waiting, 0.5), (objective, 0.7), (objective, 0.99)):
        part.advance(progress)
        loss = part(scenes.source(), scenes.target()).item()
        assert add_offsets(np.array([loss]), (part.offset,))[0] > 1e-6


def test_behind_a_closed_gate_the_value_is_that_of_the_strength():
    scenes = scenes_for("method", "adasegnet")
    gated = AdaSegNet(features=scenes.features, classes=scenes.classes, gate=0.6).double()
    assert gated(scenes.source(), scenes.target()).item() == 0.0
    assert gated.offset == gated.strengths[0]
    gated.gate.learn(torch.tensor([0.9]))
    assert gated(scenes.source(), scenes.target()).item() > 0.0
    assert gated.offset == 0.0
