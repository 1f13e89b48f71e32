import torch
from hypothesis import given
from hypothesis import strategies as st

from paretoda.data.transforms import colour_jitter, random_crops

IMAGES = torch.rand((6, 3, 12, 12), generator=torch.Generator().manual_seed(0))


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@given(st.integers(0, 99))
def test_chance_comes_from_the_generator_alone(seed: int) -> None:
    before = torch.get_rng_state()
    for augmented in (
        lambda: random_crops(IMAGES, 8, (0.08, 1), True, seeded(seed)),
        lambda: colour_jitter(IMAGES, 0.4, seeded(seed)),
    ):
        first = augmented()
        assert torch.equal(first, augmented())
        assert first.min() >= 0
        assert first.max() <= 1
    assert torch.equal(torch.get_rng_state(), before)


def test_a_crop_of_everything_is_the_image_or_its_mirror_image() -> None:
    gradient = torch.linspace(0, 1, 12).expand(64, 1, 12, 12)
    crops = random_crops(gradient, 12, (0.08, 1), True, seeded(0))
    rising = (crops[..., -1] > crops[..., 0]).all(dim=(1, 2))
    assert 20 <= rising.sum() <= 44
    assert random_crops(gradient, 12, (0.08, 1), False, seeded(0))[..., -1].min() > 0
    assert not (random_crops(gradient, 12, (0.08, 1), False, seeded(0)).diff(dim=3) < -1e-6).any()


def test_crops_take_the_share_of_the_area_that_they_should() -> None:
    # On a plane the crop's slope tells its width and height.
    across = torch.linspace(-1, 1, 101).expand(400, 1, 101, 101)
    width = random_crops(across, 51, (0.25, 0.5), False, seeded(1)).diff(dim=3).mean(dim=(1, 2, 3)) * 25.5
    height = random_crops(across.mT, 51, (0.25, 0.5), False, seeded(1)).diff(dim=2).mean(dim=(1, 2, 3)) * 25.5
    area = width * height * (100 / 101) ** 2
    assert area.min() > 0.24
    assert area.max() < 0.51
    assert (width / height).max() < 1.35
    assert (width / height).min() > 0.74


def test_no_strength_changes_no_colour() -> None:
    assert torch.allclose(colour_jitter(IMAGES, 0.0, seeded(0)), IMAGES, atol=1e-6)
    changed = colour_jitter(IMAGES, 0.4, seeded(0))
    assert (changed - IMAGES).abs().mean(dim=(1, 2, 3)).min() > 0.01
    assert colour_jitter(IMAGES[:, :1], 0.4, seeded(0)).shape == (6, 1, 12, 12)
