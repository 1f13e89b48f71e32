"""Every example in a docstring runs, and every part that a table lists has one."""

import doctest
import importlib
import pkgutil
from functools import partial

import pytest
import torch

import paretoda
from paretoda import gradients, types
from paretoda.core import problem
from paretoda.evaluation import model_selection
from paretoda.evaluation.validators import VALIDATORS, make_validator
from paretoda.objectives import (
    ALIGNMENTS,
    GUIDES,
    SOURCE_LOSSES,
    TARGET_LOSSES,
    make_alignment,
    make_guide,
    make_target_loss,
    segmentation,
)
from paretoda.schemes import SCHEMES, WRAPPERS, make_scheme

MODULES = sorted(info.name for info in pkgutil.walk_packages(paretoda.__path__, "paretoda."))

TABLES = {
    "schemes": SCHEMES,
    "wrappers": WRAPPERS,
    "source losses": SOURCE_LOSSES,
    "alignments": ALIGNMENTS,
    "target losses": TARGET_LOSSES,
    "guides": GUIDES,
    "validators": VALIDATORS,
    "methods of pixels": segmentation.SEGMENTATION_METHODS,
    "source losses of pixels": segmentation.SEGMENTATION_SOURCE_LOSSES,
    "target losses of pixels": segmentation.SEGMENTATION_TARGET_LOSSES,
    "guides of pixels": segmentation.SEGMENTATION_GUIDES,
}

PUBLIC = [
    *(getattr(types, name) for name in ("Batch", "Domain", "Source", "Target", "Model", "Objective", "Snapshot")),
    *(getattr(gradients, name) for name in gradients.__all__),
    *(getattr(problem, name) for name in ("Guide", "Problem", "Weights", "Scheme", "Move")),
    *(getattr(model_selection, name) for name in ("Choice", "Ensemble", "choose", "negative_transfer_warning")),
    *(make_scheme, make_alignment, make_target_loss, make_guide, make_validator),
    *(segmentation.make_pixel_method, segmentation.make_pixel_target_loss, segmentation.make_pixel_guide),
]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_run(name):
    try:
        module = importlib.import_module(name)
    except ImportError as error:
        pytest.skip(f"{name} needs an extra that is not installed: {error}")
    torch.manual_seed(0)
    assert doctest.testmod(module, report=True).failed == 0


@pytest.mark.parametrize("table", TABLES)
def test_every_part_that_a_table_lists_has_an_example(table):
    entries = {name: entry for name, entry in TABLES[table].items() if entry is not None}
    without = [name for name, entry in entries.items() if ">>>" not in _docstring(entry)]
    assert not without


@pytest.mark.parametrize("thing", PUBLIC, ids=lambda thing: thing.__name__)
def test_everything_public_has_an_example(thing):
    assert ">>>" in _docstring(thing)


def _docstring(entry):
    entry = entry.func if isinstance(entry, partial) else entry
    return entry.__doc__ or ""
