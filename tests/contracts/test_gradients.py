"""Every objective's gradient is that of its formula, in float64, for all that it is differentiated by.

Central differences along a random direction for each thing apart: both domains' features and logits, further outputs,
the head, and for the private loss the objective's own networks. Parts that the formula calls constants are held where
they are. An objective that has such parts is listed in `REASONS` with what they are; without them the plain
difference must agree as well. A new objective comes from its table and is checked without a line here.
"""

import copy
from dataclasses import replace

import pytest
import torch
from contracts.held import slopes
from contracts.test_objectives import EVERY, build, second
from objectives.samples import Samples
from objectives.segmentation import test_methods as scenes_tests

REASONS = {
    "predictions that the discriminator is told": ["rows alignment cdan", "rows alignment cdan-e", "maps method cdan"],
    "the same, in CDAN's further forms": [
        "maps method cdan-e",
        "rows variant cdan randomised",
        "rows variant cdan per-domain reversed",
    ],
    "the kernels' widths": [
        *("rows alignment dan", "rows alignment jan", "rows alignment jan-a", "rows variant dan unbiased"),
        *("rows variant ddc gaussian", "rows variant jan unbiased", "rows variant jan-a unbiased"),
    ],
    "the norm that is to be exceeded": ["rows alignment afn"],
    "transferable examples": ["rows alignment tat", "rows variant tat released"],
    "the coupling": ["rows alignment gsp"],
    "the discriminators' answers": [
        *("rows target tcm", "rows guide tcm", "rows variant tcm light", "rows variant tcm released"),
        *("maps target tcm", "maps guide tcm", "rows variant tcm with a floor", "maps variant tcm with a floor"),
    ],
    "weights of the samples": ["rows target mcc", "maps target mcc"],
    "the past in the marginal": [
        "maps variant im running",
        "maps variant tcm running",
        "rows variant tcm of the whole target",
    ],
    "what the head does against the entropy": ["rows alignment mme"],
    "the disagreement of the classifiers": ["maps variant clan detached"],
}
"""What in a formula is a constant, although it is made of what is differentiated -> the objectives that have it."""
OWN_BACKWARD = ("rows alignment rsd",)
"""Objectives with a backward pass of their own, into which `Held` cannot look; they have no constants."""
CONSTANTS = [name for names in REASONS.values() for name in names]
SLOW = ("tat", "tat released", "gsp", "tpn", "mcd", "clan enlarged")
"""Dozens of passes inside one value, five values for each of five parts."""

CASES = [("rows", kind, name) for kind, name in EVERY] + [("maps", kind, name) for kind, name in scenes_tests.EVERY]
each = pytest.mark.parametrize(
    ("world", "kind", "name"),
    [pytest.param(*case, marks=pytest.mark.slow if case[2] in SLOW else (), id=" ".join(case)) for case in CASES],
)


def made(world, kind, name):
    """The objective and its two domains, without a graph."""
    if world == "rows":
        samples = Samples()
        objective = build(kind, name, samples)
        with torch.no_grad():
            return objective, samples.source(), second(kind, samples), samples.head
    scenes = scenes_tests.scenes_for(kind, name)
    objective = scenes_tests.build(kind, name, scenes)
    with torch.no_grad():
        return objective, scenes.source(), scenes.target(), scenes.model.head


def parts(source, target, head):
    """What a gradient may be taken by: name -> tensors."""
    found = {}
    for name, domain in (("source", source), ("target", target)):
        found |= {f"{name} features": [domain.features], f"{name} logits": [domain.logits]}
        found |= {f"{name} extra_logits": list(domain.extra_logits)} if domain.extra_logits else {}
    return found | {"head": [parameter.detach() for parameter in head.parameters()]}


def loss_of(objective, source, target, head, moved):
    """The objective as a function of one of its parts, everything else as it is."""

    def value(leaves):
        ahead, domains = head, {"source": source, "target": target}
        if moved == "head":
            ahead = with_parameters(head, leaves)
        else:
            domain, field = moved.split()
            new = tuple(leaves) if field == "extra_logits" else leaves[0]
            domains[domain] = replace(domains[domain], **{field: new})
        pair = [replace(one, head=ahead if one.head is not None else None) for one in domains.values()]
        return objective(*pair)

    return value


def private_of(objective, source, target):
    """The private loss as a function of the objective's own parameters."""
    return lambda leaves: with_parameters(objective, leaves).private_loss(source, target)


def with_parameters(module, leaves):
    """A copy of the module whose parameters are these tensors."""
    changed = copy.deepcopy(module)
    for (name, _), leaf in zip(module.named_parameters(), leaves, strict=True):
        at, _, last = name.rpartition(".")
        layer = changed.get_submodule(at)
        layer._parameters[last] = leaf  # past the check that it is a Parameter: gradients go to the leaf
    return changed


def directions(tensors, seed):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(tensor.shape, generator=generator, dtype=tensor.dtype) for tensor in tensors]


@each
def test_the_gradient_is_that_of_the_formula(world, kind, name):
    objective, source, target, head = made(world, kind, name)
    differing, case = [], f"{world} {kind} {name}"
    for seed, (part, tensors) in enumerate(parts(source, target, head).items()):
        value, along = loss_of(objective, source, target, head, part), directions(tensors, seed)
        slope, by_formula, bare = slopes(value, tensors, along)
        if case in OWN_BACKWARD:
            by_formula = bare
        assert by_formula == pytest.approx(slope, rel=1e-5, abs=1e-8), part
        if bare != pytest.approx(slope, rel=1e-5, abs=1e-8):
            differing.append(part)
    assert bool(differing) == (case in CONSTANTS), differing


@each
def test_the_private_gradient_is_that_of_the_private_loss(world, kind, name):
    objective, source, target, _ = made(world, kind, name)
    own = [parameter.detach() for parameter in objective.parameters()]
    if not own:
        return
    slope, by_formula, _ = slopes(private_of(objective, source, target), own, directions(own, 9))
    assert slope
    assert by_formula == pytest.approx(slope, rel=1e-5, abs=1e-8)
