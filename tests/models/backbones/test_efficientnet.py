"""EfficientNet-Lite0: the published names and count, TensorFlow's padding, and the stored features of real images."""

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch.nn.functional import conv2d

from paretoda.models.backbones.efficientnet import MEAN, STD, EfficientNetLite0, SamePadConv
from paretoda.models.weights import load_weights

DATA = Path("/work/shared/data")
WEIGHTS = DATA / "weights" / "efficientnet-lite0.safetensors"
IMAGES = DATA / "office-caltech10" / "images-160px.zip"
needs_data = pytest.mark.skipif(not (WEIGHTS.exists() and IMAGES.exists()), reason="the shared data is not here")


def test_the_number_of_parameters_is_the_published_one():
    with torch.device("meta"):
        model = EfficientNetLite0(classes=1000)
    assert sum(p.numel() for p in model.parameters()) == 4_652_008


def test_names_and_shapes_are_those_of_the_published_file():
    with torch.device("meta"):
        state = EfficientNetLite0(classes=1000).state_dict()
    known = {
        "_conv_stem.weight": (32, 3, 3, 3),
        "_blocks.0._depthwise_conv.weight": (32, 1, 3, 3),
        "_blocks.1._expand_conv.weight": (96, 16, 1, 1),
        "_blocks.3._depthwise_conv.weight": (144, 1, 5, 5),
        "_blocks.15._project_conv.weight": (320, 1152, 1, 1),
        "_blocks.15._bn2.running_var": (320,),
        "_conv_head.weight": (1280, 320, 1, 1),
        "_fc.weight": (1000, 1280),
    }
    assert {key: tuple(state[key].shape) for key in known} == known
    assert "_blocks.0._bn0.weight" not in state


@pytest.mark.parametrize(
    ("size", "kernel", "stride"), [(8, 3, 2), (9, 3, 2), (7, 5, 2), (8, 5, 1), (5, 1, 1), (4, 3, 2)]
)
def test_the_odd_pixel_of_padding_goes_to_the_end(size, kernel, stride):
    layer = SamePadConv(1, 1, kernel, stride, bias=False)
    x = torch.randn(1, 1, size, size + 1)
    padded = torch.zeros(1, 1, size + 2 * kernel, size + 1 + 2 * kernel)
    before = [max((-(-n // stride) - 1) * stride + kernel - n, 0) // 2 for n in x.shape[2:]]
    padded[..., before[0] : before[0] + size, before[1] : before[1] + size + 1] = x
    out = layer(x)
    assert out.shape[2:] == (-(-size // stride), -(-(size + 1) // stride))
    assert torch.allclose(
        out, conv2d(padded, layer.weight, stride=stride)[..., : out.shape[2], : out.shape[3]], atol=1e-6
    )


def test_gradients_reach_every_parameter_and_other_channels_are_read():
    model = EfficientNetLite0(in_channels=1)
    model(torch.randn(2, 1, 32, 48)).square().sum().backward()
    assert all(p.grad is not None for p in model.parameters())


def prepared(image: Image.Image) -> torch.Tensor:
    """Short side to 256, centre crop of 224: of those tried, what comes closest to the stored features."""
    scale = 256 / min(image.size)
    image = image.resize((round(image.width * scale), round(image.height * scale)), Image.Resampling.BICUBIC)
    left, top = (image.width - 224) // 2, (image.height - 224) // 2
    pixels = np.asarray(image.crop((left, top, left + 224, top + 224)), dtype=np.float32) / 255
    return torch.tensor((pixels - np.float32(MEAN)) / np.float32(STD)).permute(2, 0, 1)


@pytest.fixture(scope="module")
def pairs():
    """A few images of Amazon, and the features that are stored for them and for all."""
    with zipfile.ZipFile(IMAGES) as archive:
        names = sorted(name for name in archive.namelist() if name.startswith("amazon/") and name.endswith(".jpg"))
        chosen = list(range(5, len(names), 120))
        images = torch.stack([prepared(Image.open(io.BytesIO(archive.read(names[i]))).convert("RGB")) for i in chosen])
    stored = torch.tensor(np.load(DATA / "office-caltech10" / "amazon-effnetlite0.npz")["x"].astype(np.float32))
    return images, stored, chosen


def test_normalisation_is_that_of_the_weights():
    white = (torch.ones(3) - torch.tensor(MEAN)) / torch.tensor(STD)
    assert white.tolist() == pytest.approx([1.0] * 3)
    assert ((0 - torch.tensor(MEAN)) / torch.tensor(STD)).tolist() == pytest.approx([-127 / 128] * 3)


@needs_data
def test_the_stored_features_of_real_images_are_reproduced(pairs):
    """Not exactly: they were made from the large originals, of which the archive has versions of 160 pixels."""
    images, stored, chosen = pairs
    model = EfficientNetLite0().eval()
    unused = load_weights(model, WEIGHTS)
    assert set(unused) == {"_fc.weight", "_fc.bias"}
    assert all(p.dtype == torch.float32 for p in model.parameters())
    with torch.no_grad():
        features = torch.nn.functional.normalize(model(images))
    similarity = features @ torch.nn.functional.normalize(stored).T
    own = similarity[torch.arange(len(chosen)), chosen]
    assert own.mean() > 0.94
    assert own.min() > 0.9
    assert (similarity.argmax(1) == torch.tensor(chosen)).float().mean() >= 0.8
    assert similarity.mean() < 0.5
    assert features.shape == (len(chosen), 1280)


@needs_data
def test_symmetric_padding_would_not_reproduce_them(pairs, monkeypatch):
    images, stored, chosen = pairs
    model = EfficientNetLite0().eval()
    load_weights(model, WEIGHTS)
    monkeypatch.setattr(
        SamePadConv,
        "forward",
        lambda self, x: conv2d(x, self.weight, None, self.stride, self.kernel_size[0] // 2, 1, self.groups),
    )
    with torch.no_grad():
        own = torch.cosine_similarity(model(images), stored[chosen])
    assert own.mean() < 0.92
