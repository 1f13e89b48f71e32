"""Several networks as one: the mean of probabilities, shared weights, and a description that rebuilds them."""

import torch

from paretoda.models.classifier import describe, from_description, join_classifiers, make_model


def _three():
    return [make_model("mlp", (6,), classes=4, bottleneck=8, dropout=0.5) for _ in range(3)]


def test_the_mean_of_the_probabilities_is_predicted():
    models, x = _three(), torch.randn(11, 6)
    joined = join_classifiers(models).eval()
    wanted = torch.stack([model.eval()(x).softmax(1) for model in models]).mean(0)
    torch.testing.assert_close(joined(x).softmax(1), wanted)
    torch.testing.assert_close(joined(x).exp(), wanted)  # the logits are logarithms already
    for (features, logits), model in zip(joined.head.split(joined.encoder(x)), models, strict=True):
        torch.testing.assert_close(features, model.encoder(x))
        torch.testing.assert_close(logits, model(x))


def test_the_networks_are_shared_and_not_copied():
    models = _three()
    joined = join_classifiers(models)
    with torch.no_grad():
        models[1].head.weight.zero_()
    assert not joined.head.members[1].weight.any()


def test_the_description_rebuilds_all_members():
    joined = join_classifiers(_three()).eval()
    again = from_description(describe(joined)).eval()
    again.load_state_dict(joined.state_dict())
    x = torch.randn(5, 6)
    assert torch.equal(again(x), joined(x))
    assert "members" not in describe(_three()[0])  # older files have no such entry
