"""Resizing in the exported file is Pillow's, bit for bit."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from paretoda.run.export.resampling import columns_may_come_first, resize

sides = st.integers(1, 60)
TALL = columns_may_come_first()


@pytest.mark.parametrize("kind", ["bilinear", "bicubic"])
@settings(deadline=None, max_examples=60)
@given(sides, sides, sides, sides, st.integers(0, 2**32 - 1), st.booleans())
def test_every_pixel_is_pillows(kind, height, width, wide, high, seed, extreme):
    rng = np.random.default_rng(seed)
    picture = rng.integers(0, 256, (height, width, 3), dtype=np.uint8)
    if extreme:  # the cubic overshoots here, and what is cut off depends on the order of the passes
        picture = (picture > 127).astype(np.uint8) * np.uint8(255)
    wanted = np.asarray(Image.fromarray(picture).resize((wide, high), Image.Resampling[kind.upper()]))
    found = resize(torch.from_numpy(picture).permute(2, 0, 1)[None], (wide, high), kind, tall=TALL)
    np.testing.assert_array_equal(found[0].permute(1, 2, 0).numpy(), wanted)
