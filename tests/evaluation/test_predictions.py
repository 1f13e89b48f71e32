"""Whole-set predictions: in order, in evaluation mode, and the model is left as it was."""

import inspect

import pytest
import torch
from torch import nn

from paretoda.evaluation import oracle
from paretoda.evaluation.predictions import domain_outputs, evaluation_mode, predict
from paretoda.types import Model, Source, Target


@pytest.fixture
def model():
    torch.manual_seed(0)
    return Model(nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.5)), nn.Linear(4, 2))


def test_batches_give_what_the_whole_gives_and_nothing_changes(model):
    inputs = torch.randn(10, 3)
    model.encoder[1].eval()
    state = {key: value.clone() for key, value in model.state_dict().items()}
    features, logits = predict(model, inputs.split(4))
    assert [layer.training for layer in model.modules()] == [True, True, True, False, True, True]
    assert all(torch.equal(value, state[key]) for key, value in model.state_dict().items())
    assert not features.requires_grad
    assert not logits.requires_grad
    assert not features.is_inference()  # prototypes made of them enter a graph later
    model.eval()
    assert torch.allclose(features, model.encoder(inputs))
    assert torch.allclose(logits, model(inputs))


def test_the_mode_comes_back_after_an_error(model):
    with pytest.raises(RuntimeError, match="shapes"):
        predict(model, [torch.randn(2, 5)])
    assert model.training
    assert model.encoder[2].training
    assert torch.is_grad_enabled()
    with evaluation_mode(model):
        assert not model.encoder[2].training


def test_nothing_to_predict_is_said(model):
    with pytest.raises(ValueError, match="nothing to predict"):
        predict(model, [])


def test_labels_make_a_source_and_their_absence_a_target(model):
    inputs = torch.randn(5, 3)
    source = domain_outputs(model, inputs.split(2), torch.arange(5))
    target = domain_outputs(model, inputs.split(2))
    assert type(source) is Source
    assert type(target) is Target
    assert source.labels.tolist() == source.index.tolist() == target.index.tolist() == [0, 1, 2, 3, 4]
    assert torch.equal(source.logits, target.logits)
    with pytest.raises(ValueError, match="5 samples and 4 labels"):
        domain_outputs(model, inputs.split(2), torch.arange(4))


def test_every_name_of_the_oracle_says_so():
    functions = [
        value for _, value in inspect.getmembers(oracle, inspect.isfunction) if value.__module__ == oracle.__name__
    ]
    assert len(functions) == 3
    for function in functions:
        assert "oracle" in function.__name__
        assert any("oracle" in name for name in inspect.signature(function).parameters)
