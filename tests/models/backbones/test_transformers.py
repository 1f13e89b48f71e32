"""Networks of transformers: their features against transformers itself, from a folder and from a run's facts."""

import json

import pytest
import torch
from models.tiny_networks import CONFIGS, change, saved, size

import paretoda
from paretoda.errors import BackboneError, WeightsError
from paretoda.models.backbones import describe_external, find_backbone, make_backbone
from paretoda.models.weights import check_shapes
from paretoda.schemes import ParetoDA

transformers = pytest.importorskip("transformers")


def images(kind, n=2):
    return torch.randn(n, 3, size(kind), size(kind), generator=torch.Generator().manual_seed(0))


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    place = tmp_path_factory.mktemp("hub")
    return {kind: saved(place / kind, kind, classifier=kind == "vit") for kind in CONFIGS}


def expected(kind, folder, x):
    """What the documented rule makes of transformers' own output."""
    network = transformers.AutoModel.from_pretrained(folder).eval()
    with torch.no_grad():
        found = network(pixel_values=x)
    if kind == "vit":
        return found.last_hidden_state[:, 0]
    if kind == "pvt_v2":
        return found.last_hidden_state.mean(dim=(2, 3))
    return found.pooler_output.flatten(1)


@pytest.mark.parametrize("kind", CONFIGS)
def test_features_are_those_of_transformers_from_the_folder_and_from_a_file(kind, folders):
    x, name = images(kind), f"hf:{folders[kind]}"
    network = make_backbone(name, tuple(x.shape[1:]), "default").eval()
    wanted = expected(kind, folders[kind], x)
    with torch.no_grad():
        assert torch.allclose(network(x), wanted, atol=1e-5)
    facts = json.loads(json.dumps(network.facts))
    again = make_backbone("hf:/nowhere/any-more", tuple(x.shape[1:]), facts=facts).eval()
    again.load_state_dict(network.state_dict())
    with torch.no_grad():
        assert torch.equal(again(x), network(x))
    assert facts["width"] == wanted.shape[1]


@pytest.mark.parametrize("kind", ["dinov2", "resnet"])
def test_gradients_reach_the_network_as_with_the_plain_sum(kind, folders):
    network = make_backbone(f"hf:{folders[kind]}", tuple(images(kind).shape[1:]), "default")
    x = images(kind, 4)
    features = network(x)
    losses = {"one": features.square().mean(), "two": (features - 1).abs().mean()}
    wanted = torch.autograd.grad(sum(losses.values()), list(network.parameters()), allow_unused=True, retain_graph=True)
    paretoda.backward(losses, shared=network, scheme=paretoda.schemes.Linear())
    for parameter, gradient in zip(network.parameters(), wanted, strict=True):
        if gradient is not None:
            assert torch.allclose(parameter.grad, gradient, atol=1e-6)
    features = network(x)
    report = paretoda.backward(
        {"one": features.square().mean(), "two": (features - 1).abs().mean()},
        shared=network,
        guide=(network(x + 1) ** 2).mean(),
        scheme=ParetoDA(),
    )
    assert report.finite


def test_gradients_can_be_differentiated_again(folders):
    network = make_backbone(f"hf:{folders['vit']}", (3, 32, 32), "default")
    slopes = torch.autograd.grad(
        network(images("vit")).square().mean(), network.network.model.embeddings.cls_token, create_graph=True
    )
    slopes[0].square().sum().backward()
    assert any(parameter.grad is not None for parameter in network.parameters())


def test_size_and_normalisation_are_the_preprocessors(tmp_path):
    folder = saved(tmp_path / "vit")
    plain = find_backbone(f"hf:{folder}")
    assert (plain.size, plain.multiple, plain.channels, plain.mean) == (32, 8, 3, (0.5,) * 3)
    told = {"image_mean": [0.1, 0.2, 0.3], "image_std": [0.4, 0.5, 0.6], "size": {"shortest_edge": 48}}
    change(folder / "preprocessor_config.json", **told, do_center_crop=True, crop_size={"height": 40, "width": 40})
    found = find_backbone(f"hf:{folder}")
    assert (found.size, found.mean, found.std) == (40, pytest.approx((0.1, 0.2, 0.3)), pytest.approx((0.4, 0.5, 0.6)))
    change(folder / "preprocessor_config.json", do_normalize=False, rescale_factor=2 / 255, do_center_crop=False)
    found = find_backbone(f"hf:{folder}")
    pixel = torch.tensor(100.0)
    assert found.size == 48
    assert torch.isclose((pixel / 255 - found.mean[0]) / found.std[0], pixel * 2 / 255)


def test_a_position_is_interpolated_and_a_cut_patch_refused(folders):
    assert describe_external(f"hf:{folders['vit']}", (3, 48, 48))["width"] == 16
    with pytest.raises(BackboneError, match="multiples of 8 pixels, not 30x30; take --image-size 32"):
        make_backbone(f"hf:{folders['vit']}", (3, 30, 30))
    with pytest.raises(BackboneError, match="cannot read images of 8x8 pixels"):
        make_backbone(f"hf:{folders['convnext']}", (3, 8, 8))


def test_weights_of_another_network_are_refused(folders, tmp_path):
    folder = saved(tmp_path / "vit")
    (folder / "model.safetensors").write_bytes((folders["dinov2"] / "model.safetensors").read_bytes())
    with pytest.raises(WeightsError, match=r"model\.safetensors"):
        make_backbone(f"hf:{folder}", (3, 32, 32), "default")
    (folder / "model.safetensors").write_bytes(b"\x80\x04")
    with pytest.raises(WeightsError, match="is not a file of tensors"):
        make_backbone(f"hf:{folder}", (3, 32, 32), "default")
    (folder / "model.safetensors").unlink()
    with pytest.raises(BackboneError, match="has no weights: put model"):
        make_backbone(f"hf:{folder}", (3, 32, 32), "default")
    assert make_backbone(f"hf:{folder}", (3, 32, 32), "none")(torch.zeros(1, 3, 32, 32)).shape == (1, 16)


BROKEN = {
    "no network of images alone": {"model_type": "bert"},
    "with another network inside": {"model_type": "detr"},
    "take --backbone timm:NAME": {"model_type": "timm_wrapper", "architecture": "resnet18"},
    "does not say its model_type": {"model_type": 3},
    "a num_hidden_layers that no network": {"num_hidden_layers": 10**9},
    "a hidden_size that no network": {"hidden_size": 2**40},
    "more than 4000 tensors": {"num_hidden_layers": 60000, "hidden_size": 2, "num_attention_heads": 1},
    "for which its folder is too small": {"hidden_size": 60000},
    "makes no network": {"hidden_act": "os.system"},
    "images of 4 channels": {"num_channels": 4},
}


@pytest.mark.parametrize(("message", "values"), BROKEN.items())
def test_a_configuration_that_makes_no_sense_gives_one_sentence(message, values, folders, tmp_path):
    config = json.loads((folders["vit"] / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, **values}))
    with pytest.raises(BackboneError, match=message) as error:
        make_backbone(f"hf:{tmp_path}", (3, 32, 32), "default")
    assert "\n" not in str(error.value)


def test_what_would_run_code_or_fetch_it_is_left_out(folders, tmp_path):
    folder = saved(tmp_path / "vit")
    (folder / "evil.py").write_text("import pathlib; pathlib.Path('sprung').touch()")
    change(
        folder / "config.json",
        auto_map={"AutoModel": "evil.Evil"},
        _attn_implementation="evil/kernels",
        attn_implementation="evil/kernels",
        _name_or_path="evil/evil",
        quantization_config={"quant_method": "evil"},
    )
    facts = describe_external(f"hf:{folder}", (3, 32, 32))
    assert "evil" not in json.dumps(facts)
    assert facts == describe_external(f"hf:{folders['vit']}", (3, 32, 32))


@pytest.mark.parametrize("text", ["{", "[1]", "null", "", '{"a": ' * 5000])
def test_a_broken_config_gives_one_sentence(text, tmp_path):
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(BackboneError, match=r"config.json|model_type"):
        find_backbone(f"hf:{tmp_path}")


def test_a_huge_network_of_a_stranger_takes_no_memory(folders):
    facts = describe_external(f"hf:{folders['vit']}", (3, 32, 32))
    huge = {**facts, "config": {**facts["config"], "hidden_size": 65536, "num_attention_heads": 1}, "width": 65536}
    with pytest.raises(WeightsError, match="another model"):
        check_shapes(lambda: make_backbone("hf:x", (3, 32, 32), facts=huge), {}, folders["vit"])


def test_a_wrong_width_is_found(folders):
    facts = describe_external(f"hf:{folders['vit']}", (3, 32, 32))
    with pytest.raises(BackboneError, match="gives 16 features instead of 17"):
        make_backbone("hf:x", (3, 32, 32), facts={**facts, "width": 17})
