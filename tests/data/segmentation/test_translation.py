import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import Tensor

from paretoda.data.segmentation.translation import (
    TRANSLATIONS,
    FourierTranslation,
    HistogramTranslation,
    ReinhardTranslation,
    fourier_transfer,
    histogram_transfer,
    mixed_spectrum,
    opponent_colours,
    reinhard_transfer,
)
from paretoda.errors import DataError

EVERY = [FourierTranslation(0.2), ReinhardTranslation(), HistogramTranslation()]


def photos(seed: int, n: int, height: int, width: int) -> Tensor:
    """Raw images with structure, of whole values as they come from files."""
    chance = torch.Generator().manual_seed(seed)
    coarse = torch.rand((n, 3, 4, 5), generator=chance) * 255
    smooth = torch.nn.functional.interpolate(coarse, size=(height, width), mode="bilinear")
    return (smooth + 20 * torch.randn(smooth.shape, generator=chance)).clamp(0, 255).round()


def chance(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


sizes = st.tuples(st.integers(8, 21), st.integers(8, 21))
seeds = st.integers(0, 1000)
betas = st.floats(0, 0.5)


@settings(max_examples=25)
@given(seeds, sizes, betas)
def test_every_translation_of_an_image_to_itself_is_the_identity(seed: int, size, beta: float) -> None:
    image = photos(seed, 1, *size)
    for translation in (FourierTranslation(beta), ReinhardTranslation(), HistogramTranslation()):
        assert torch.allclose(translation(image, image, chance()), image, atol=1e-3)


@settings(max_examples=25)
@given(seeds, sizes, st.floats(0, 0.99))
def test_fda_below_one_frequency_is_the_identity(seed: int, size, share: float) -> None:
    source, target = photos(seed, 2, *size), photos(seed + 1, 2, *size)
    assert torch.equal(FourierTranslation(share / min(size))(source, target, chance()), source)


@settings(max_examples=25)
@given(seeds, sizes, betas)
def test_the_mixed_spectrum_is_that_of_a_real_image(seed: int, size, beta: float) -> None:
    source, target = photos(seed, 1, *size), photos(seed + 1, 1, *size)
    image = torch.fft.ifft2(mixed_spectrum(source, target, max(1, int(beta * min(size)))))
    assert image.imag.abs().max() < 1e-4 * image.real.abs().max()


@settings(max_examples=25)
@given(seeds, sizes, st.integers(1, 4))
def test_fda_takes_low_amplitudes_from_the_target_and_all_else_from_the_source(seed: int, size, reach: int) -> None:
    source, target = photos(seed, 1, *size), photos(seed + 1, 1, *size)
    result = fourier_transfer(source, target, (reach + 0.5) / min(size))
    shifted = [torch.fft.fftshift(torch.fft.fft2(images), dim=(-2, -1)) for images in (source, target, result)]
    here, there, mixed = shifted
    rows, columns = (slice(max(0, n // 2 - reach), n // 2 + reach + 1) for n in size)
    inside = torch.zeros(size, dtype=torch.bool)
    inside[rows, columns] = True
    scale = here.abs().max()
    assert torch.allclose(mixed[..., inside].abs(), there[..., inside].abs(), atol=1e-5 * scale)
    assert torch.allclose(mixed[..., ~inside], here[..., ~inside], atol=1e-5 * scale)
    known = (here.abs() > 1e-3 * scale) & (mixed.abs() > 1e-3 * scale)
    assert (torch.angle(mixed / here)[known].abs() < 1e-2).all()
    assert torch.allclose(result.mean((2, 3)), target.mean((2, 3)), atol=1e-2)


def test_fda_does_not_clip() -> None:
    source = 255 * torch.eye(16).expand(1, 3, 16, 16)
    result = FourierTranslation(0.1)(source, torch.full((1, 3, 16, 16), 255.0), chance())
    assert result.max() > 255


@pytest.mark.parametrize("beta", [-0.01, 0.51, float("nan")])
def test_fda_refuses_windows_that_do_not_fit(beta: float) -> None:
    with pytest.raises(DataError, match="beta"):
        FourierTranslation(beta)


@settings(max_examples=25)
@given(seeds, sizes)
def test_reinhard_gives_the_target_mean_and_deviation(seed: int, size) -> None:
    source, target = photos(seed, 2, *size), photos(seed + 1, 2, *size)
    result = reinhard_transfer(source, target)
    assert torch.allclose(opponent_colours(result).mean((2, 3)), opponent_colours(target).mean((2, 3)), atol=1e-2)
    assert torch.allclose(opponent_colours(result).std((2, 3)), opponent_colours(target).std((2, 3)), atol=1e-2)
    assert torch.allclose(result.mean((2, 3)), target.mean((2, 3)), atol=1e-2)


def test_reinhard_does_not_blow_up_what_has_no_contrast() -> None:
    grey = photos(0, 1, 12, 12)[:, :1].expand(1, 3, 12, 12)
    target = photos(1, 1, 12, 12)
    for source in (grey, torch.full((1, 3, 12, 12), 77.7)):
        result = reinhard_transfer(source, target)
        assert torch.allclose(result.mean((2, 3)), target.mean((2, 3)), atol=1e-2)
        assert result.abs().max() < 1000
    assert torch.allclose(
        opponent_colours(reinhard_transfer(grey, target))[:, 1:].std((2, 3)), torch.zeros(2), atol=1e-2
    )


@settings(max_examples=25)
@given(seeds, sizes)
def test_histograms_of_distinct_values_become_those_of_the_target(seed: int, size) -> None:
    source = torch.rand((2, 3, *size), generator=chance(seed), dtype=torch.float64) * 255
    assume(len(source.unique()) == source.numel())
    target = photos(seed + 1, 2, *size).double()
    result = histogram_transfer(source, target)
    assert torch.allclose(result.flatten(2).sort().values, target.flatten(2).sort().values, atol=1e-6)


@settings(max_examples=25)
@given(seeds, sizes)
def test_histogram_matching_keeps_order_and_ties_and_gives_the_mean(seed: int, size) -> None:
    source, target = (photos(seed, 1, *size) / 25).round() * 25, photos(seed + 1, 1, *size)
    result = histogram_transfer(source, target)
    for before, after in zip(source.flatten(0, 1), result.flatten(0, 1), strict=True):
        order = before.flatten().argsort(stable=True)
        assert (after.flatten()[order].diff() >= 0).all()
        assert len(after.unique()) <= len(before.unique())
    assert torch.allclose(result.mean((2, 3)), target.mean((2, 3)), atol=1e-2)


@pytest.mark.parametrize("translation", EVERY, ids=lambda translation: type(translation).__name__)
class TestEveryTranslation:
    def test_each_image_takes_after_one_of_the_target(self, translation) -> None:
        source, target = photos(0, 6, 10, 12), photos(1, 6, 10, 12)
        before = source.clone(), target.clone()
        result = translation(source, target, chance(3))
        assert result.shape == source.shape
        assert result.dtype == source.dtype
        gaps = (result.mean((2, 3))[:, None] - target.mean((2, 3))[None]).abs().amax(-1)
        assert (gaps.amin(1) < 0.05).all()
        assert len(gaps.argmin(1).unique()) > 1
        assert torch.equal(source, before[0])
        assert torch.equal(target, before[1])

    def test_chance_is_the_generator_alone(self, translation) -> None:
        source, target = photos(0, 6, 10, 12), photos(1, 6, 10, 12)
        torch.manual_seed(0)
        one = translation(source, target, chance(3))
        torch.manual_seed(1)
        assert torch.equal(one, translation(source, target, chance(3)))
        assert not torch.equal(one, translation(source, target, chance(4)))

    def test_other_sizes_and_whole_numbers_are_refused(self, translation) -> None:
        with pytest.raises(ValueError, match="one size"):
            translation(photos(0, 1, 10, 12), photos(0, 1, 12, 10), chance())
        whole = photos(0, 1, 10, 12).to(torch.uint8)
        with pytest.raises(TypeError, match="floating"):
            translation(whole, whole, chance())


@settings(max_examples=5)
@given(st.sampled_from(["fda", "reinhard", "histogram"]))
def test_the_table_makes_translations(name: str) -> None:
    make = TRANSLATIONS[name]
    assert make is not None
    assert make()(photos(0, 1, 10, 12), photos(1, 1, 10, 12), chance()).shape == (1, 3, 10, 12)


def test_the_table_knows_none() -> None:
    assert TRANSLATIONS["none"] is None
