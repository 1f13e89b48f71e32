"""The same DANN by `paretoda.adapt`: no selection, no reference, no files."""

from __future__ import annotations

import json
import sys

import numpy as np
from dann import LR, Clock

import paretoda


def main() -> None:
    source, target, steps, out = sys.argv[1:]
    clock = Clock()
    run = paretoda.adapt(
        source,
        target,
        method="dann+none",
        scheme="linear",
        steps=int(steps),
        components=0,
        lr=LR,
        schedule="constant",
        options=["alignment.warm_up=false"],
        select="last",
        reference=False,
        after=[clock],
    )
    with np.load(target) as theirs:
        names = run.predict(theirs["x"])
    np.save(out, [run.classes.index(name) for name in names])
    print(json.dumps({"step": clock.step, "steps": len(clock.times)}))


if __name__ == "__main__":
    main()
