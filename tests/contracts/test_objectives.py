"""What every objective must be: listed, finite, differentiable, repeatable, and blind to target labels."""

import copy
import inspect
from functools import partial
from pathlib import Path

import pytest
import torch
from objectives.samples import Samples, gradients, silent
from torch import nn

import paretoda.objectives
from paretoda.core.problem import add_offsets
from paretoda.objectives import (
    ALIGNMENTS,
    GUIDES,
    SOURCE_LOSSES,
    TARGET_LOSSES,
    Afn,
    Bnm,
    Bsp,
    Cdan,
    Coral,
    CrossEntropy,
    Dan,
    Dann,
    Ddc,
    Gsp,
    Jada,
    Jan,
    JanA,
    M3sda,
    Mcd,
    Mdan,
    Mdd,
    Swd,
    Tat,
    Tcm,
    Tpn,
    make_alignment,
    make_guide,
    make_target_loss,
)
from paretoda.types import Objective, Target

TABLES = {"source": SOURCE_LOSSES, "alignment": ALIGNMENTS, "target": TARGET_LOSSES, "guide": GUIDES}
NAMES = [(kind, name) for kind, table in TABLES.items() for name, make in table.items() if make is not None]
VARIANTS = {
    "cdan randomised": partial(Cdan, conditioning="randomised", projections=16),
    "cdan per-domain reversed": partial(Cdan, entropy=True, balance="per-domain", entropy_grad="reversed"),
    "tcm light": partial(Tcm, light=True),
    "tcm released": partial(Tcm, refine="logit", released_loss=True),
    "tcm attached": partial(Tcm, detach=False),
    "tcm with a floor": partial(Tcm, floor=-0.5),
    "tcm of the whole target": partial(Tcm, marginal="whole"),
    "dann at once": partial(Dann, warm_up=False),
    "mdd without dropout": partial(Mdd, dropout=0.0),
    "dan unbiased": partial(Dan, estimator="u"),
    "ddc gaussian": partial(Ddc, kernel="gaussian"),
    "jan unbiased": partial(Jan, estimator="u"),
    "jan-a unbiased": partial(JanA, estimator="u"),
    "coral with means": partial(Coral, means=True),
    "coral of the other layer": partial(Coral, layer="logits"),
    "afn hard": partial(Afn, hard=True),
    "bsp of three": partial(Bsp, k=3),
    "bnm fast": partial(Bnm, fast=True, per="rank"),
    "tat released": partial(Tat, released=True),
    "tpn linear": partial(Tpn, kernel="linear"),
    "mdan hard": partial(Mdan, maximum="hard"),
    "m3sda of five moments": partial(M3sda, moments=5),
}
"""Options that change the formula."""
EVERY = [*NAMES, *(("variant", name) for name in VARIANTS)]
OWN = {Dann, Cdan, Mdd, JanA, Mcd, Mdan, Swd, Jada, Tat, Gsp, Tcm}
"""Objectives with networks of their own."""
WARMED_UP = {"dann", "cdan", "cdan-e", "mdd", "jan", "jan-a", "jada", "dta"}
"""Alignments that start at strength 0, as published; any other that does has an option `warm_up`."""
each = pytest.mark.parametrize(("kind", "name"), EVERY, ids=[f"{kind}: {name}" for kind, name in EVERY])


def build(kind, name, samples, dtype=torch.float64, seed=0):
    """The objective of that name, refreshed, with narrow networks."""
    torch.manual_seed(seed)
    shape = {"features": samples.features, "classes": samples.classes}
    make = VARIANTS[name] if kind == "variant" else TABLES[kind][name]
    if kind == "guide":
        shape["target_loss"] = Tcm(**shape, width=8).to(dtype) if name == "tcm" else None
    width = {option: 8 for option in ("hidden", "width") if option in inspect.signature(make).parameters}
    objective = make(**shape, **width).to(dtype)
    samples.taught = objective.follows_teacher
    objective.refresh(samples.snapshot())
    return objective


def second(kind, samples, order=None):
    """What the objective gets as its target."""
    return samples.held_out(order) if kind == "guide" else samples.target(order)


def value(objective, kind, samples, seed=0):
    torch.manual_seed(seed)
    return objective(samples.source(), second(kind, samples))


def drawn(function, domains, seed=0):
    """What the function says of the domains, when chance is as it always is."""
    torch.manual_seed(seed)
    return function(*domains).item()


def test_every_file_is_in_its_table():
    for kind, table in TABLES.items():
        folder = Path(inspect.getfile(paretoda.objectives)).parent / kind
        files = {path.stem for path in folder.glob("*.py") if path.stem != "__init__"}
        makers = [make.func if isinstance(make, partial) else make for make in table.values() if make is not None]
        assert files == {make.__module__.rsplit(".", 1)[1] for make in makers}


def test_an_unknown_name_is_answered_with_the_nearest():
    shape = {"features": 4, "classes": 3}
    with pytest.raises(ValueError, match="there is no method 'dannn'; did you mean 'dann'"):
        make_alignment("dannn", **shape)
    with pytest.raises(ValueError, match="there is no target loss 'zzz'; choose from none, tcm"):
        make_target_loss("zzz", **shape)
    with pytest.raises(ValueError, match="there is no guide 'agreemnt'; did you mean 'agreement'"):
        make_guide("agreemnt", **shape)


def test_an_unknown_option_is_answered_with_the_nearest():
    shape = {"features": 4, "classes": 3}
    with pytest.raises(ValueError, match="'dann' has no option 'hiden'; did you mean 'hidden'"):
        make_alignment("dann", **shape, options={"hiden": 3})
    with pytest.raises(ValueError, match="'none' has no option 'width'; it has none"):
        make_target_loss("none", **shape, options={"width": 3})
    with pytest.raises(ValueError, match="has no option 'classes'"):
        make_target_loss("tcm", **shape, options={"classes": 3})
    made = make_alignment("cdan-e", **shape, options={"hidden": 7, "balance": "per-domain"})
    assert made.discriminator.first.out_features == 7
    assert made.entropy


def test_nothing_is_made_for_nothing():
    assert make_alignment("source-only", features=4, classes=3) is None
    assert make_target_loss("none", features=4, classes=3) is None


@each
@pytest.mark.parametrize("classes", [2, 3, 65])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_value_is_a_finite_scalar_and_its_gradient_reaches_the_encoder(kind, name, classes, dtype):
    samples = Samples(classes=classes, dtype=dtype)
    objective = build(kind, name, samples, dtype)
    for progress in (None, 0.0, 0.5, 1.0):
        if progress is not None:
            objective.advance(progress)
        loss = value(objective, kind, samples)
        assert loss.shape == ()
        assert loss.dtype == dtype
        assert loss.isfinite()
        found = gradients(loss, samples.body())
        assert all(gradient.isfinite().all() for gradient in found)
        if progress != 0.0:
            assert any(gradient.any() for gradient in found)


@each
@pytest.mark.parametrize("sizes", [(1, 1, 1), (1, 3, 1), (4, 1, 1), (30, 2, 40)])
def test_batches_of_every_size_are_welcome(kind, name, sizes):
    samples = Samples(source=sizes[0], target=sizes[1], held_out=sizes[2])
    objective = build(kind, name, samples)
    loss = value(objective, kind, samples)
    assert loss.isfinite()
    assert all(gradient.isfinite().all() for gradient in gradients(loss, samples.body()))


@each
def test_the_private_loss_reaches_the_objectives_own_parameters_only(kind, name):
    samples = Samples()
    objective = build(kind, name, samples)
    own = list(objective.parameters())
    private = objective.private_loss(samples.source(), second(kind, samples))
    assert (private is None) == (not own) == (type(objective) not in OWN)
    if private is not None:
        assert private.isfinite()
        assert silent(private, [*samples.body(), *samples.heads()])
        assert all(gradient.isfinite().all() for gradient in gradients(private, own))
        assert not silent(private, own)


@each
def test_what_the_encoder_lowers_never_reaches_the_objectives_own_parameters(kind, name):
    samples = Samples()
    objective = build(kind, name, samples)
    if own := list(objective.parameters()):
        assert silent(value(objective, kind, samples), own)


@each
def test_the_value_is_the_same_again_and_changes_no_state(kind, name):
    samples = Samples()
    objective = build(kind, name, samples)
    before = copy.deepcopy(objective.state_dict())
    first, again = value(objective, kind, samples), value(objective, kind, samples)
    assert first.item() == again.item()
    assert_same_state(objective.state_dict(), before)


@each
def test_running_statistics_are_learned_from_the_private_loss_in_training_only(kind, name):
    samples = Samples()
    objective = build(kind, name, samples)
    if not any(isinstance(layer, nn.BatchNorm1d) for layer in objective.modules()):
        return
    for mode in (False, True):
        before = copy.deepcopy(objective.state_dict())
        objective.train(mode).private_loss(samples.source(), second(kind, samples))
        changed = {
            key.rsplit(".", 1)[1] for key, tensor in objective.state_dict().items() if (tensor != before[key]).any()
        }
        assert changed == ({"running_mean", "running_var"} if mode else set())


@each
def test_the_state_survives_a_round_trip(kind, name, tmp_path):
    samples = Samples()
    objective = build(kind, name, samples)
    objective.private_loss(samples.source(), second(kind, samples))  # running statistics are state
    torch.save(objective.state_dict(), tmp_path / "state.pt")
    twin = build(kind, name, Samples(target=4, seed=5), seed=3)
    twin.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=True))
    if kind == "guide" and name == "tcm":  # the discriminators are saved by the target loss
        assert not twin.state_dict()
        return
    assert_same_state(twin.state_dict(), objective.state_dict())
    for mode in (True, False):
        objective.train(mode)
        twin.train(mode)
        assert value(twin, kind, samples).item() == value(objective, kind, samples).item()


@each
def test_the_order_of_the_samples_in_a_domain_does_not_matter(kind, name):
    samples = Samples()
    objective = build(kind, name, samples)
    for layer in objective.modules():
        if isinstance(layer, nn.Dropout):
            layer.eval()
    generator = torch.Generator().manual_seed(1)
    first = torch.randperm(9, generator=generator)
    other = torch.randperm(8 if kind == "guide" else 21, generator=generator)
    turned = samples.source(first), second(kind, samples, other)
    straight = samples.source(), second(kind, samples)
    assert drawn(objective, turned) == pytest.approx(drawn(objective, straight), abs=1e-12)
    if type(objective) in OWN and name != "tcm released":  # the authors' code looks at the last sample
        assert drawn(objective.private_loss, turned) == pytest.approx(drawn(objective.private_loss, straight))


@each
@pytest.mark.parametrize("size", [1e2, 1e4])
def test_extreme_logits_and_features_give_finite_values_and_gradients(kind, name, size):
    samples = Samples(dtype=torch.float32)
    objective = build(kind, name, samples, torch.float32)
    with torch.no_grad():
        samples.head.weight.mul_(size)
        for parameter in objective.parameters():
            parameter.mul_(size ** (1 / 3))
    loss = value(objective, kind, samples)
    assert loss.isfinite()
    assert all(gradient.isfinite().all() for gradient in gradients(loss, [*samples.body(), *samples.heads()]))
    private = objective.private_loss(samples.source(), second(kind, samples))
    if private is not None:
        assert private.isfinite()
        assert all(gradient.isfinite().all() for gradient in gradients(private, list(objective.parameters())))


@each
def test_no_objective_needs_a_place_for_target_labels(kind, name):
    samples = Samples()
    objective = build(kind, name, samples)
    samples.taught = False
    target = second(kind, samples)
    assert type(target) is Target
    assert not hasattr(target, "labels")
    if objective.follows_teacher:  # its labels are those of a teacher, which reads no others
        with pytest.raises(TypeError, match="TaughtTarget"):
            objective(samples.source(), target)
    else:
        objective(samples.source(), target)


@each
def test_it_is_a_documented_module_that_copies_and_prints(kind, name):
    samples = Samples()
    objective = build(kind, name, samples)
    assert isinstance(objective, Objective)
    assert repr(objective).startswith(type(objective).__name__ + "(")
    assert type(objective).__doc__
    assert inspect.getmodule(type(objective)).__doc__
    assert "Args:" in type(objective).__doc__
    copied = copy.deepcopy(objective)
    assert value(copied, kind, samples).item() == value(objective, kind, samples).item()


@pytest.mark.parametrize(("kind", "name"), [pair for pair in NAMES if pair[0] != "alignment"])
def test_losses_and_guides_are_never_negative(kind, name):
    for seed in range(8):
        samples = Samples(seed=seed, classes=2 + seed % 5)
        assert value(build(kind, name, samples), kind, samples).item() >= -1e-12


@pytest.mark.parametrize("name", [name for name, make in ALIGNMENTS.items() if make is not None])
def test_an_alignment_has_no_say_at_the_start_and_all_its_strength_at_the_end(name):
    samples = Samples()
    objective = build("alignment", name, samples)
    fresh = value(objective, "alignment", samples).item()
    objective.advance(0.0)
    if name not in WARMED_UP and "warm_up" not in inspect.signature(ALIGNMENTS[name]).parameters:
        assert value(objective, "alignment", samples).item() == fresh
        return
    if objective.is_whole_method:  # the loss of the source is left
        source = CrossEntropy(samples.features, samples.classes)(samples.source(), samples.target())
        assert value(objective, "alignment", samples).item() == pytest.approx(source.item())
        return
    assert value(objective, "alignment", samples).item() == 0.0
    assert silent(value(objective, "alignment", samples), samples.body())
    objective.advance(1.0)
    assert value(objective, "alignment", samples).item() == pytest.approx(fresh, rel=1e-4)
    with pytest.raises(ValueError, match="share of the training"):
        objective.advance(1.5)


@pytest.mark.parametrize(("kind", "name"), [pair for pair in EVERY if pair[0] != "guide"])
@pytest.mark.parametrize("seed", range(3))
def test_what_schemes_of_loss_values_read_is_positive_from_the_first_step_on(kind, name, seed):
    samples = Samples(seed=seed)
    objective = build(kind, name, samples, seed=seed)
    for progress in (None, 0.0, 0.01, 0.3, 1.0):
        if progress is not None:
            objective.advance(progress)
        assert 0 <= objective.offset < 10
        found = add_offsets(value(objective, kind, samples).detach().numpy()[None], (objective.offset,))
        assert found[0] > 1e-4


@pytest.mark.parametrize("name", [name for name, make in ALIGNMENTS.items() if make is not None])
def test_a_loss_that_can_be_negative_or_begins_at_0_has_an_offset(name):
    """With an offset of 0 it would be raised to 1e-8, and a scheme that divides by it would see nothing else."""
    found = []
    for seed in range(8):
        samples = Samples(seed=seed)
        objective = build("alignment", name, samples, seed=seed)
        for progress in (0.0, 0.5):
            objective.advance(progress)
            found.append((value(objective, "alignment", samples).item(), objective.offset))
    assert all(loss > 0 or offset > 1e-2 for loss, offset in found)


@pytest.mark.parametrize("name", GUIDES)
def test_a_guide_changes_nothing_and_does_not_look_at_the_source_batch(name):
    samples = Samples()
    torch.manual_seed(0)
    target_loss = Tcm(samples.features, samples.classes, width=8).double()
    guide = GUIDES[name](features=samples.features, classes=samples.classes, target_loss=target_loss).double()
    guide.refresh(samples.snapshot())
    before = copy.deepcopy({**guide.state_dict(), **target_loss.state_dict()})
    one = guide(samples.source(), samples.held_out())
    gradients(one, samples.body())
    assert not list(guide.parameters())
    assert guide.private_loss(*samples.batch()) is None
    assert_same_state({**guide.state_dict(), **target_loss.state_dict()}, before)
    assert guide(Samples(seed=9).source(), samples.held_out()).item() == one.item()


def assert_same_state(one, other):
    assert list(one) == list(other)
    for key, tensor in one.items():
        torch.testing.assert_close(tensor, other[key], rtol=0, atol=0, equal_nan=True)
