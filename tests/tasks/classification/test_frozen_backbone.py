"""The features of a frozen backbone: a function of the image, the transform and the network, and of nothing else."""

import sys

import numpy as np
import pytest
import torch
from models.tiny_networks import saved, size
from PIL import Image
from torch import nn

import paretoda
from paretoda.data import open_samples
from paretoda.data.transforms import ImageTransform
from paretoda.io.cache import clear_cache, list_cache
from paretoda.models.backbones import make_backbone
from paretoda.models.backbones import user_module as own_module
from paretoda.run.directory.directory import RunDirectory
from paretoda.tasks.classification.frozen_backbone import FrozenBackbone
from paretoda.tasks.classification.predictor import load_predictor

QUICK = {"steps": 3, "batch_size": 8, "bottleneck": 8, "select": "last", "reference": False, "device": "cpu"}
TRANSFORM = ImageTransform(32, 3, (0.5,) * 3, (0.25,) * 3)
STATES = ("cold", "warm", "off", "half")


@pytest.fixture(autouse=True)
def _cache(tmp_path, monkeypatch):
    monkeypatch.setenv("PARETODA_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("PARETODA_CACHE_GB", raising=False)


def images(count=50, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (count, 40, 40, 3), dtype=np.uint8)


def backbone(name="efficientnet-lite0", seed=0):
    torch.manual_seed(seed)
    return FrozenBackbone(name, make_backbone(name, (3, 32, 32)))


def features(x, own=None, transform=TRANSFORM, **options):
    return (own or backbone()).features(open_samples(x, labelled=False), transform, **options)


def prepare(state, x, monkeypatch):
    """Bring the cache into a state."""
    if state == "off":
        monkeypatch.setenv("PARETODA_CACHE_GB", "0")
    if state in ("warm", "half"):
        features(x if state == "warm" else x[::2])


@pytest.mark.parametrize("name", ["efficientnet-lite0", "resnet18", "cnn"])
def test_the_bits_of_an_image_do_not_depend_on_the_set(name, monkeypatch):
    monkeypatch.setenv("PARETODA_CACHE_GB", "0")
    x = images()
    whole = features(x, backbone(name))
    rng = np.random.default_rng(1)
    for count in (1, 2, 7, 16, 33, 50):
        chosen = rng.permutation(50)[:count]
        assert features(x[chosen], backbone(name)).equal(whole[torch.from_numpy(chosen)])


@pytest.mark.parametrize("state", STATES)
def test_the_bits_of_an_image_do_not_depend_on_the_cache(state, monkeypatch):
    x = images()
    with monkeypatch.context() as off:
        off.setenv("PARETODA_CACHE_GB", "0")
        wanted = features(x)
    prepare(state, x, monkeypatch)
    assert features(x).equal(wanted)
    assert features(x[::-1]).equal(wanted.flip(0))


def test_files_and_lists_of_files_in_any_order_are_the_same_images(tmp_path):
    for number, image in enumerate(images(20)):
        (tmp_path / "images").mkdir(exist_ok=True)
        Image.fromarray(image).save(tmp_path / "images" / f"{number:02}.png")
    names = [f"images/{number:02}.png" for number in range(20)][::-1]
    (tmp_path / "some.txt").write_text("\n".join(names[5:]))
    whole = features(tmp_path / "images")
    own = backbone()
    own.network.forward = lambda _: pytest.fail("an image was encoded again")
    assert features(tmp_path / "some.txt", own).equal(whole.flip(0)[5:])
    assert features(tmp_path / "images" / "07.png", own).equal(whole[7:8])


def test_a_file_with_other_content_is_another_image(tmp_path):
    path = tmp_path / "one.png"
    first, second = images(2)
    Image.fromarray(first).save(path)
    before = features(path)
    Image.fromarray(second).save(path)
    assert not features(path).equal(before)
    Image.fromarray(first).save(path)
    assert features(path).equal(before)


def test_another_weight_layer_transform_or_view_gives_other_features():
    x = images(4)
    before = features(x)
    other = backbone()
    with torch.no_grad():
        next(other.network.parameters())[0] += 1
    assert not features(x, other).equal(before)
    torch.manual_seed(0)
    plain = make_backbone("cnn", (3, 32, 32))
    one = features(x, FrozenBackbone("own", plain))
    assert not features(x, FrozenBackbone("own", nn.Sequential(plain, nn.Tanh()))).equal(one)
    larger = ImageTransform(48, 3, (0.5,) * 3, (0.25,) * 3)
    assert not features(x, transform=larger).equal(before)
    flipped = ImageTransform(32, 3, (0.5,) * 3, (0.25,) * 3, augment="flip")
    views = features(x, transform=flipped, crops=10)
    assert views.shape == (40, 1280)
    assert features(x[2:3], transform=flipped, crops=10).equal(views[20:30])
    assert features(x, transform=flipped).equal(views[4::10])  # the middle, as evaluation takes it


def test_other_code_of_a_users_own_layer_gives_other_features(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    code = (
        "from torch import nn\nclass Net(nn.Module):\n    def forward(self, x):\n        return {} * x.mean((2, 3))\n"
    )

    def made(factor):
        (tmp_path / "own_layer.py").write_text(code.format(factor))
        sys.modules.pop("own_layer", None)
        return features(images(3), FrozenBackbone("own", __import__("own_layer").Net()))

    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert made("1024.0").equal(512 * made("2.0"))


def test_gradients_and_modes_are_as_before():
    own = backbone()
    own.network.train()
    found = features(images(20), own)
    assert own.network.training
    assert torch.is_grad_enabled()
    assert not found.requires_grad


def test_the_last_two_sets_stay_in_memory(monkeypatch):
    monkeypatch.setenv("PARETODA_CACHE_GB", "0")
    own = backbone()
    sets = [images(3, seed) for seed in range(3)]
    first, second, third = (features(x, own) for x in sets)
    forward, seen = own.network.forward, []
    own.network.forward = lambda x: seen.append(len(x)) or forward(x)
    assert features(sets[2], own) is third
    assert features(sets[1], own) is second
    assert seen == []
    assert features(sets[0], own).equal(first)
    assert len(seen) == 1


def coloured(n=40):
    rng = np.random.default_rng(0)
    y = np.arange(n) % 3
    x = rng.integers(0, 90, (n, 32, 32, 3))
    x[np.arange(n), :, :, y] += 120
    return x.astype(np.uint8), y


def load(run):
    return load_predictor(RunDirectory(run).model, RunDirectory(run).description)


FACTORY = """
from torch import nn

class Net(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(channels, 4, 3), nn.AdaptiveAvgPool2d(2), nn.Flatten())

    def forward(self, images):
        return self.body(images)
"""


@pytest.fixture(params=["weights", "hf", "module"])
def given(request, tmp_path, monkeypatch):
    """Settings of a frozen backbone of each kind."""
    if request.param == "weights":
        torch.save(make_backbone("cnn", (3, 32, 32)).state_dict(), tmp_path / "cnn.pth")
        return {"backbone": "cnn", "backbone_weights": str(tmp_path / "cnn.pth"), "image_size": 32}
    if request.param == "hf":
        pytest.importorskip("transformers")
        return {"backbone": f"hf:{saved(tmp_path / 'net', 'dinov2')}", "image_size": size("dinov2")}
    name = f"mine_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(FACTORY)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(own_module, "_consented", set())
    torch.manual_seed(0)
    return {"backbone": f"module:{name}.Net", "image_size": 32}


def test_a_run_and_its_model_file_share_features(given, tmp_path, monkeypatch):
    x, y = coloured()
    run = paretoda.adapt((x, y, ["r", "g", "b"]), 255 - x, tmp_path / "run", frozen=True, **given, **QUICK)
    wanted = run.predict_proba(255 - x)
    (entry,) = list_cache()
    assert (entry.items, entry.name) == (80, f"{given['backbone']}, {given['image_size']} px")
    loaded = load(tmp_path / "run")
    loaded.backbone.network.forward = lambda _: pytest.fail("an image was encoded again")
    assert np.array_equal(loaded.predict_proba(255 - x), wanted)
    assert np.array_equal(loaded.predict_proba(255 - x[7:8]).argmax(1), wanted[7:8].argmax(1))
    with monkeypatch.context() as small:
        small.setattr("paretoda.tasks.classification.predictor._MOST_IN_MEMORY", 1)
        blocks = loaded.probabilities(open_samples(255 - x, labelled=False), batch_size=16)
    whole = loaded.probabilities(open_samples(255 - x, labelled=False), batch_size=16)
    assert np.array_equal(blocks, whole)
    clear_cache()
    assert np.array_equal(load(tmp_path / "run").predict_proba(255 - x), wanted)
    monkeypatch.setenv("PARETODA_CACHE_GB", "0")
    assert np.array_equal(load(tmp_path / "run").predict_proba(255 - x), wanted)
