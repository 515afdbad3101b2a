import io

import numpy as np
import pytest
from PIL import Image

from regard.core.errors import DataError
from regard.data.datasets.catalog import find_data
from regard.data.image.io import open_image
from regard.studies.compression.jpeg import jpeg_rates, plot_rates, psnr_at, tile, untile


@pytest.fixture(scope="module")
def shapes():
    images = [open_image(e.source).resize((20, 20)) for e in find_data("shapes:10").train]
    return np.stack([np.asarray(image.convert("RGB")) for image in images]).transpose(0, 3, 1, 2)


@pytest.mark.parametrize("num", [1, 3, 4, 7])
def test_untile_inverts_tile(num):
    images = np.random.default_rng(0).integers(0, 256, (num, 3, 4, 5), dtype=np.uint8)
    assert (untile(tile(images), num, size=(4, 5)) == images).all()


def test_rates_are_a_pareto_front(shapes):
    rates = jpeg_rates(shapes)
    sizes, qualities = ([getattr(r, k) for r in rates] for k in ("num_bytes", "psnr"))
    assert sizes == sorted(set(sizes))
    assert qualities == sorted(set(qualities))
    assert rates[0].bits_per_pixel == 8 * sizes[0] / (10 * 20 * 20)


def test_size_is_that_of_the_file(shapes):
    # Without padding there is only one sheet.
    shapes = shapes[..., :16, :16]
    rates = jpeg_rates(shapes)
    sheet, sizes = Image.fromarray(tile(shapes)), []
    for quality in (1, 2, 3):
        for sampling in (0, 2):
            buffer = io.BytesIO()
            sheet.save(buffer, "JPEG", quality=quality, subsampling=sampling, optimize=True)
            sizes.append(len(buffer.getvalue()))
    assert rates[0].num_bytes in sizes


def test_psnr_is_interpolated(shapes):
    rates = jpeg_rates(shapes)
    middle = (rates[2].bits_per_pixel + rates[3].bits_per_pixel) / 2
    assert psnr_at(rates, middle) == pytest.approx((rates[2].psnr + rates[3].psnr) / 2)
    assert psnr_at(rates, rates[0].bits_per_pixel / 2) is None


def test_plot_shows_jpeg_and_others(shapes):
    axes = plot_rates(jpeg_rates(shapes), {"ours": [(0.5, 20.0)]}).axes[0]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["ours", "JPEG"]
    assert len(axes.lines[1].get_xdata()) >= 4


def test_too_large_sheet_is_refused():
    with pytest.raises(DataError, match="65,000 pixels per side.*65001"):
        jpeg_rates(np.zeros((1, 1, 65_001, 1), dtype=np.uint8))
