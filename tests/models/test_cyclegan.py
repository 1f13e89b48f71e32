import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from paretoda.models.cyclegan import CycleGan, CycleTranslation, Generator, from_raw, make_patch_discriminator, to_raw


def stirred(seed: int = 0) -> Generator:
    """A small generator whose last layer is not zero."""
    torch.manual_seed(seed)
    generator = Generator(width=8, blocks=1)
    torch.nn.init.normal_(generator.last.weight, std=3)
    return generator


def test_a_generator_has_about_three_hundred_thousand_parameters() -> None:
    assert 280_000 < sum(parameter.numel() for parameter in Generator().parameters()) < 350_000


@settings(max_examples=12)
@given(st.integers(8, 33), st.integers(8, 33), st.integers(0, 100))
def test_size_and_range_stay_for_any_weights(height: int, width: int, seed: int) -> None:
    images = torch.rand((2, 3, height, width), generator=torch.Generator().manual_seed(seed)) * 255
    translated = CycleTranslation(stirred(seed))(images, images, torch.Generator())
    assert translated.shape == images.shape
    assert translated.min() >= 0
    assert translated.max() <= 255
    assert (translated - images).abs().max() > 20


def test_an_untrained_generator_is_nearly_the_identity() -> None:
    images = torch.linspace(0, 255, 3 * 12 * 16).view(1, 3, 12, 16)
    translated = CycleTranslation(Generator())(images, images, torch.Generator())
    assert (translated - images).abs().max() < 3


def test_a_translation_gives_no_gradients_and_ignores_the_target() -> None:
    images = torch.rand((1, 3, 12, 16)) * 255
    translation = CycleTranslation(stirred())
    one = translation(images.requires_grad_(), images, torch.Generator())
    assert not one.requires_grad
    assert torch.equal(one, translation(images, torch.zeros_like(images), torch.Generator().manual_seed(3)))


def test_scales_are_inverse_to_each_other() -> None:
    raw = torch.tensor([0.0, 127.5, 255.0])
    assert from_raw(raw).tolist() == [-1, 0, 1]
    assert torch.equal(to_raw(from_raw(raw)), raw)


def test_a_judge_scores_patches_of_22_pixels() -> None:
    network = make_patch_discriminator(4)
    network[3] = torch.nn.Identity()  # instance normalisation looks at the whole image
    images = torch.rand((1, 3, 64, 64), requires_grad=True)
    scores = network(images)
    assert scores.shape == (1, 1, 15, 15)
    scores[0, 0, 7, 7].backward()
    seen = images.grad.abs().sum((0, 1)) > 0
    assert seen.any(0).sum() == 22
    assert seen.any(1).sum() == 22


@pytest.mark.parametrize("part", ["to_target", "to_source", "judge_target", "judge_source"])
def test_weights_are_where_torch_sees_them(part: str) -> None:
    one, other = CycleGan(8, 1), CycleGan(8, 1)
    other.load_state_dict(one.state_dict())
    images = torch.rand((1, 3, 16, 16))
    assert torch.equal(getattr(one, part)(images), getattr(other, part)(images))
    assert any(name.startswith(part) for name in one.state_dict())
