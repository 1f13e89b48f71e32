"""The examples in the docstrings run and give what they say."""

import doctest

import pytest

from paretoda.estimator import estimators, scoring


@pytest.mark.parametrize("module", [estimators, scoring])
def test_the_examples_give_what_they_say(module):
    result = doctest.testmod(module)
    assert result.failed == 0
    assert result.attempted > 5
