"""Numbers for the classes of label files that nothing names."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from paretoda.data.segmentation.label_files import read_ids
from paretoda.data.segmentation.scene_arrays import numbered
from paretoda.data.segmentation.scene_files import FileScenes
from paretoda.data.segmentation.tables import plain_table
from paretoda.domains import IGNORE


def named(scenes: FileScenes) -> FileScenes:
    """The same scenes with a table; where nothing tells the classes, all labels are read to number them.

    One wrong pixel can make many classes: where numbers below the largest never occur, a note says where that stands.
    """
    if scenes.table is not None or scenes.label_paths is None:
        return scenes
    present = [set(np.unique(read_ids(path)).tolist()) - {IGNORE} for path in scenes.label_paths]
    most = max(max(ids, default=0) for ids in present)
    note = f"Nothing names the classes, so they are numbered 0..{most}; write them into classes.txt."
    if absent := set(range(most)).difference(*present):
        file = next(path for path, ids in zip(scenes.label_paths, present, strict=True) if most in ids)
        note += f" {len(absent)} of them have no pixel; see whether the label {most} in {file} is a mistake."
    return replace(scenes, table=plain_table(numbered(1 + most)), notes=(*scenes.notes, note))
