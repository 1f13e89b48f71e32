"""Data of segmentation: scenes of any origin, and the pair of a labelled source and an unlabelled target."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__all__ = [
    "TABLES",
    "LabelTable",
    "ScenePair",
    "ScenePairSettings",
    "SceneSamples",
    "SceneTransform",
    "examine_scenes",
    "make_scene_pair",
    "open_scenes",
]

if TYPE_CHECKING:
    from paretoda.data.segmentation.build_pair import make_scene_pair
    from paretoda.data.segmentation.doctor import examine_scenes
    from paretoda.data.segmentation.label_tables import TABLES, LabelTable
    from paretoda.data.segmentation.opening import open_scenes
    from paretoda.data.segmentation.pair import ScenePair, ScenePairSettings
    from paretoda.data.segmentation.samples import SceneSamples
    from paretoda.data.segmentation.transforms import SceneTransform

_HOMES = {
    "TABLES": "label_tables",
    "LabelTable": "label_tables",
    "ScenePair": "pair",
    "ScenePairSettings": "pair",
    "SceneSamples": "samples",
    "SceneTransform": "transforms",
    "examine_scenes": "doctor",
    "make_scene_pair": "build_pair",
    "open_scenes": "opening",
}


def __getattr__(name: str) -> Any:
    """Import a name on first use, as in paretoda.data."""
    if name in _HOMES:
        return getattr(import_module(f"paretoda.data.segmentation.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'paretoda.data.segmentation' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
