"""Checkpointed networks have the gradients and the memory of the plain ones, and keep less for the backward pass."""

import copy

import pytest
import torch
from torch import nn

import paretoda
from paretoda.models.batchnorm import encode, encode_held_out
from paretoda.models.classifier import make_model
from paretoda.models.memory import checkpoint_activations, find_blocks
from paretoda.models.segmentation.segmenter import make_segmenter
from paretoda.schemes import ParetoPaper

NETWORKS = {
    "mlp": (lambda: make_model("mlp", (7,), 3, bottleneck=8, dropout=0.3), (7,), 1),
    "cnn": (lambda: make_model("cnn", (1, 16, 16), 3, bottleneck=8), (1, 16, 16), 2),
    "lenet": (lambda: make_model("lenet", (1, 16, 16), 3), (1, 16, 16), 1),
    "resnet18": (lambda: make_model("resnet18", (3, 32, 32), 3, bottleneck=8), (3, 32, 32), 9),
    "efficientnet-lite0": (lambda: make_model("efficientnet-lite0", (3, 32, 32), 3), (3, 32, 32), 17),
    "dilated": (lambda: make_segmenter("dilated", 3, levels=2), (3, 16, 24), 4),
}


def gradients(model, shape, bn):
    """After one exact step, with the guide's pass: the gradient and everything that is saved of the model."""
    torch.manual_seed(1)
    x = torch.randn(3, 4, *shape).double()
    source, target = encode(model.encoder, x[0], x[1], bn=bn)
    ahead = encode_held_out(model.encoder, x[2])
    losses = [model.head(source).square().mean(), (source.mean(0) - target.mean(0)).square().mean()]
    guide = model.head(ahead).logsumexp(1).mean()
    features = [source, target, ahead]
    paretoda.backward(losses, shared=model.encoder, scheme=ParetoPaper(), features=features, guide=guide)
    grads = [parameter.grad.reshape(-1) for parameter in model.encoder.parameters() if parameter.grad is not None]
    return torch.cat(grads), {name: tensor.clone() for name, tensor in model.state_dict().items()}


LARGE = ("resnet18", "efficientnet-lite0")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in LARGE else name for name in NETWORKS]
)
@pytest.mark.parametrize("bn", ["joint", "per-domain"])
def test_gradients_and_batchnorm_are_those_of_the_plain_network(name, bn):
    make, shape, blocks = NETWORKS[name]
    torch.manual_seed(0)
    plain = make().double()
    lean = copy.deepcopy(plain)
    checkpoint_activations(lean.encoder)
    assert len(find_blocks(lean.encoder)) == blocks
    copied = copy.deepcopy(lean)
    grads, state = gradients(plain, shape, bn)
    for network in (lean, copied):
        mine, kept = gradients(network, shape, bn)
        assert torch.allclose(mine, grads, rtol=0, atol=1e-10)
        assert list(kept) == list(state)
        assert all(torch.equal(kept[key], state[key]) for key in state), "BatchNorm must remember a batch once"
    assert any("num_batches_tracked" in key for key in state) or name == "lenet"


def kept_bytes(network, x):
    """What autograd saves in a forward pass, without the parameters."""
    own = {parameter.data_ptr() for parameter in network.parameters()}
    seen = {}

    def pack(tensor):
        if tensor.data_ptr() not in own:
            seen[tensor.data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        kept = network(x)
    assert kept.requires_grad
    return sum(seen.values())


def test_a_checkpointed_network_keeps_less():
    torch.manual_seed(0)
    plain = make_model("resnet18", (3, 64, 64), 3).encoder
    lean = copy.deepcopy(plain)
    checkpoint_activations(lean)
    x = torch.randn(2, 3, 64, 64)
    assert kept_bytes(lean, x) < 0.6 * kept_bytes(plain, x)


def test_evaluation_and_a_network_without_blocks():
    model = make_model("cnn", (1, 16, 16), 3).eval()
    x = torch.randn(2, 1, 16, 16)
    expected = model(x)
    checkpoint_activations(model.encoder)
    with torch.no_grad():
        assert torch.equal(model(x), expected)
    with pytest.raises(ValueError, match="no blocks that are known"):
        checkpoint_activations(nn.Linear(2, 2))
    own = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 2))
    checkpoint_activations(nn.ModuleList([own]), [own[0]])
    own(torch.ones(1, 2)).sum().backward()
    assert own[0].weight.grad is not None


def test_the_layers_have_their_old_modes_in_the_second_pass():
    """A pass by running statistics once normalised by the batch when it was computed again."""
    torch.manual_seed(0)
    plain = nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5), nn.Tanh()).double()
    lean = copy.deepcopy(plain)
    checkpoint_activations(lean)
    x, found = torch.randn(6, 4).double() + 1, []
    for network in (plain, lean):
        y = encode_held_out(network, x, statistics="running")
        found.append(torch.autograd.grad(y.square().sum(), list(network.parameters())))
    assert all(torch.allclose(one, two, rtol=0, atol=1e-12) for one, two in zip(*found, strict=True))
