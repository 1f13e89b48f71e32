"""Who changes BatchNorm's running statistics, and which statistics normalise, is exactly what was asked for."""

import copy

import pytest
import torch
from torch import nn

from paretoda.models.batchnorm import encode, encode_held_out, frozen_statistics

torch.set_num_threads(1)

LAYERS = [
    (nn.BatchNorm1d, (6, 4)),
    (nn.BatchNorm2d, (6, 4, 3, 3)),
    (nn.BatchNorm3d, (6, 4, 2, 2, 2)),
    (nn.SyncBatchNorm, (6, 4, 3)),
]


def _encoder():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 3), nn.BatchNorm1d(3))


def _batches():
    generator = torch.Generator().manual_seed(1)
    return torch.randn(8, 5, generator=generator), 2 + 3 * torch.randn(6, 5, generator=generator)


def _buffers(module):
    return {name: buffer.clone() for name, buffer in module.named_buffers()}


def _assert_same_buffers(module, before):
    after = dict(module.named_buffers())
    assert after.keys() == before.keys()
    assert all(torch.equal(after[name], before[name]) for name in before)


@pytest.mark.parametrize(("layer", "shape"), LAYERS)
@pytest.mark.parametrize("momentum", [0.1, None])
def test_frozen_layers_normalise_by_the_batch_and_remember_nothing(layer, shape, momentum):
    torch.manual_seed(0)
    module = layer(4, momentum=momentum)
    module(torch.randn(shape))
    before, versions = _buffers(module), [buffer._version for buffer in module.buffers()]
    x = 5 + torch.randn(shape)
    with frozen_statistics(module):
        frozen = module(x)
    _assert_same_buffers(module, before)
    assert [buffer._version for buffer in module.buffers()] == versions
    assert torch.equal(frozen, module(x))
    assert module.num_batches_tracked == 2
    assert not torch.equal(module.running_mean, before["running_mean"])


@pytest.mark.parametrize("layer", [nn.BatchNorm1d, nn.SyncBatchNorm])
def test_layers_without_running_statistics_stay_so(layer):
    module = layer(4, track_running_stats=False)
    x = torch.randn(6, 4, 3)
    with frozen_statistics(module):
        assert torch.equal(module(x), layer(4)(x))
    assert module.track_running_stats is False
    assert list(module.buffers()) == []
    torch.testing.assert_close(encode_held_out(module, x, statistics="running"), module(x))
    assert module.training


def test_layers_in_evaluation_mode_are_not_touched():
    module = _encoder()
    module(_batches()[0])
    module.eval()
    expected = module(_batches()[1])
    with frozen_statistics(module):
        assert torch.equal(module(_batches()[1]), expected)


def test_everything_is_restored_after_an_exception_and_after_nesting():
    module = nn.Sequential(nn.BatchNorm1d(5), nn.BatchNorm1d(5, track_running_stats=False), nn.BatchNorm1d(5).eval())
    buffers = [id(buffer) for buffer in module.buffers()]

    def state():
        return [(layer.training, layer.track_running_stats, layer.momentum) for layer in module]

    before = state()
    with pytest.raises(ValueError, match="stop"), frozen_statistics(module), frozen_statistics(module[0]):
        raise ValueError("stop")
    with pytest.raises(RuntimeError):
        encode_held_out(module, torch.zeros(2, 3), statistics="running")
    assert state() == before
    assert [id(buffer) for buffer in module.buffers()] == buffers


def test_gradients_flow_through_a_frozen_forward_that_later_forwards_follow():
    module, reference = _encoder(), _encoder()
    source, target = _batches()
    features = encode_held_out(module, target)
    module(source)
    expected = torch.autograd.grad(reference(target).square().sum(), list(reference.parameters()))
    for ours, theirs in zip(
        torch.autograd.grad(features.square().sum(), list(module.parameters())), expected, strict=True
    ):
        assert torch.equal(ours, theirs)


def test_a_later_training_forward_does_not_change_the_gradient_of_a_held_out_one():
    module = _encoder()
    source, target = _batches()
    module(source)
    reference = copy.deepcopy(module).eval()
    features = encode_held_out(module, target, statistics="running")
    module(100 * source)
    expected = torch.autograd.grad(reference(target).square().sum(), list(reference.parameters()))
    for ours, theirs in zip(
        torch.autograd.grad(features.square().sum(), list(module.parameters())), expected, strict=True
    ):
        torch.testing.assert_close(ours, theirs)


def test_frozen_statistics_hold_under_compilation():
    module = _encoder()
    compiled = torch.compile(module, backend="eager")
    before = _buffers(module)
    x = _batches()[1]
    frozen = encode_held_out(compiled, x)
    _assert_same_buffers(module, before)
    torch.testing.assert_close(frozen, compiled(x))
    assert module[1].num_batches_tracked == 1


def test_joint_features_are_views_of_one_forward():
    module, reference = _encoder(), _encoder()
    source, target = _batches()
    ours = encode(module, source, target, bn="joint")
    expected = reference(torch.cat([source, target]))
    assert torch.equal(ours[0], expected[:8])
    assert torch.equal(ours[1], expected[8:])
    assert ours[0]._base is ours[1]._base is not None
    assert module[1].num_batches_tracked == 1


def test_per_domain_features_use_their_own_statistics_and_only_the_target_is_remembered():
    module, reference = _encoder(), _encoder()
    source, target = _batches()
    ours = encode(module, source, target, bn="per-domain")
    assert torch.equal(ours[0], copy.deepcopy(reference)(source))
    assert torch.equal(ours[1], reference(target))
    _assert_same_buffers(module, _buffers(reference))


@pytest.mark.parametrize("statistics", ["batch", "running"])
def test_held_out_data_leaves_the_running_statistics_alone(statistics):
    module = _encoder()
    source, target = _batches()
    module(source)
    before = _buffers(module)
    training = copy.deepcopy(module)
    expected = training(target) if statistics == "batch" else training.eval()(target)
    assert torch.equal(encode_held_out(module, target, statistics=statistics), expected)
    _assert_same_buffers(module, before)
    assert all(layer.training for layer in module.modules())


def test_only_batchnorm_changes_its_mode_for_running_statistics():
    module = nn.Sequential(nn.BatchNorm1d(5), nn.Dropout(0.5))
    torch.manual_seed(0)
    assert (encode_held_out(module, torch.ones(50, 5), statistics="running") == 0).any()


def test_unknown_choices_are_refused():
    source, target = _batches()
    with pytest.raises(ValueError, match="'joint' or 'per-domain'"):
        encode(_encoder(), source, target, bn="both")
    with pytest.raises(ValueError, match="'batch' or 'running'"):
        encode_held_out(_encoder(), target, statistics="none")
