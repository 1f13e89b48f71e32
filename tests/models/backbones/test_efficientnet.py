"""EfficientNet-Lite: published names and counts, TensorFlow's padding, stored features and classes of real images."""

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch.nn.functional import conv2d

from paretoda.models.backbones import BACKBONES, make_backbone
from paretoda.models.backbones.efficientnet import (
    MEAN,
    STD,
    SamePadConv,
    efficientnet_lite0,
    efficientnet_lite1,
    efficientnet_lite2,
)
from paretoda.models.weights import find_package_file, load_weights

DATA = Path("/work/shared/data")
WEIGHTS = DATA / "weights" / "efficientnet-lite0.safetensors"
IMAGES = DATA / "office-caltech10" / "images-160px.zip"
needs_data = pytest.mark.skipif(not (WEIGHTS.exists() and IMAGES.exists()), reason="the shared data is not here")


FAMILY = {
    "efficientnet-lite0": efficientnet_lite0,
    "efficientnet-lite1": efficientnet_lite1,
    "efficientnet-lite2": efficientnet_lite2,
}
PARAMETERS = {"efficientnet-lite0": 4_652_008, "efficientnet-lite1": 5_416_680, "efficientnet-lite2": 6_092_072}
BLOCKS = {  # outputs x blocks of the stages in the published files
    "efficientnet-lite1": ((16, 1), (24, 3), (40, 3), (80, 4), (112, 4), (192, 5), (320, 1)),
    "efficientnet-lite2": ((16, 1), (24, 3), (48, 3), (88, 4), (120, 4), (208, 5), (352, 1)),
}
KERNELS = (3, 3, 5, 3, 5, 5, 3)
OFFICE31 = DATA / "office31" / "images-200px.zip"
IMAGENET = {"mouse": {673}, "back_pack": {414}, "laptop_computer": {620, 681}, "bike": {444, 671}}
"""Class of Office-31 -> numbers of ImageNet's classes: mouse; backpack; laptop, notebook; two kinds of bicycles."""


@pytest.mark.parametrize("name", FAMILY)
def test_the_number_of_parameters_is_the_published_one(name):
    with torch.device("meta"):
        model = FAMILY[name](classes=1000)
    assert sum(p.numel() for p in model.parameters()) == PARAMETERS[name]


def published(name):
    """Return random tensors under the names and with the shapes of the published file."""
    shapes = {"_conv_stem.weight": (32, 3, 3, 3), "_fc.weight": (1000, 1280), "_fc.bias": (1000,)}
    norms = {"_bn0": 32, "_bn1": 1280}
    block, inputs = 0, 32
    for kernel, (outputs, repeats) in zip(KERNELS, BLOCKS[name], strict=True):
        for _ in range(repeats):
            here, wide = f"_blocks.{block}.", inputs * (6 if block else 1)
            if block:
                shapes[f"{here}_expand_conv.weight"], norms[f"{here}_bn0"] = (wide, inputs, 1, 1), wide
            shapes[f"{here}_depthwise_conv.weight"], norms[f"{here}_bn1"] = (wide, 1, kernel, kernel), wide
            shapes[f"{here}_project_conv.weight"], norms[f"{here}_bn2"] = (outputs, wide, 1, 1), outputs
            block, inputs = block + 1, outputs
    shapes["_conv_head.weight"] = (1280, inputs, 1, 1)
    for norm, width in norms.items():
        shapes |= {f"{norm}.{part}": (width,) for part in ("weight", "bias", "running_mean", "running_var")}
        shapes[f"{norm}.num_batches_tracked"] = ()
    return {key: torch.rand(shape) if shape else torch.tensor(7) for key, shape in shapes.items()}


@pytest.mark.parametrize("name", BLOCKS)
def test_a_file_in_the_published_format_is_loaded_whole(name, tmp_path):
    tensors, file = published(name), tmp_path / "weights.pth"
    torch.save(tensors, file)
    whole = FAMILY[name](classes=1000)
    assert load_weights(whole, file) == ()
    assert {key: tuple(tensor.shape) for key, tensor in whole.state_dict().items()} == {
        key: tuple(tensor.shape) for key, tensor in tensors.items()
    }
    encoder = make_backbone(name, (3, 32, 32), file)
    assert all(torch.equal(tensor, tensors[key]) for key, tensor in encoder.state_dict().items())
    assert encoder.eval()(torch.zeros(1, 3, 32, 32)).shape == (1, BACKBONES[name].width)


@pytest.mark.skipif(not OFFICE31.exists(), reason="the shared data is not here")
@pytest.mark.parametrize("name", FAMILY)
def test_the_published_weights_recognise_real_photographs(name):
    file = find_package_file(name)
    if file is None:
        pytest.skip(f"the package with the weights of {name} is not installed")
    model, size = FAMILY[name](classes=1000).eval(), BACKBONES[name].size or 224
    assert load_weights(model, file) == ()
    right = []
    with zipfile.ZipFile(OFFICE31) as archive:
        for kind, numbers in IMAGENET.items():
            paths = sorted(path for path in archive.namelist() if f"dslr/images/{kind}/" in path)
            for path in [path for path in paths if path.endswith(".jpg")][:4]:
                image = Image.open(io.BytesIO(archive.read(path))).convert("RGB").resize((size, size))
                pixels = torch.tensor((np.asarray(image, dtype=np.float32) - 127) / 128).permute(2, 0, 1)
                with torch.no_grad():
                    right.append(int(model(pixels[None]).argmax()) in numbers)
    assert len(right) == 16
    assert sum(right) >= 12


def test_names_and_shapes_are_those_of_the_published_file():
    with torch.device("meta"):
        state = efficientnet_lite0(classes=1000).state_dict()
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
    model = efficientnet_lite0(in_channels=1)
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
    model = efficientnet_lite0().eval()
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
    model = efficientnet_lite0().eval()
    load_weights(model, WEIGHTS)
    monkeypatch.setattr(
        SamePadConv,
        "forward",
        lambda self, x: conv2d(x, self.weight, None, self.stride, self.kernel_size[0] // 2, 1, self.groups),
    )
    with torch.no_grad():
        own = torch.cosine_similarity(model(images), stored[chosen])
    assert own.mean() < 0.92
