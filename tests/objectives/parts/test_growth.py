import pytest

from paretoda.objectives.parts.growth import Growth


def test_it_is_nothing_then_grows_evenly_then_is_whole():
    growth = Growth(0.2, 0.6)
    assert [growth(share) for share in (0.0, 0.19, 0.2, 0.4, 0.6, 1.0)] == pytest.approx([0, 0, 0, 0.5, 1, 1])


def test_it_may_begin_at_once():
    growth = Growth(0.3, 0.3)
    assert [growth(share) for share in (0.29, 0.3, 1.0)] == [0, 1, 1]
    assert Growth(0.0, 0.0)(0.0) == 1


@pytest.mark.parametrize("shares", [(-0.1, 0.5), (0.5, 0.4), (0.5, 1.1)])
def test_other_shares_are_refused(shares):
    with pytest.raises(ValueError, match="shares of the training, in this order"):
        Growth(*shares)
