"""An autoencoder of drawn shapes finds what is odd and packs what it knows."""

import math

import pytest

from regard.runs.request import Request
from regard.runs.train import train
from regard.studies.anomalies import detect_anomalies
from regard.studies.autoencoder import AutoencoderRun
from regard.studies.compression.codec import Compressor
from regard.studies.compression.jpeg import jpeg_rates, psnr_at
from regard.studies.compression.range_coder import HEADER_BYTES

pytestmark = pytest.mark.learn

ROUNDED = (
    "model.encoder.bottleneck.kind=rounded",
    "model.encoder.bottleneck.levels=7",
    "model.encoder.bottleneck.dim=24",
    "train.max_epochs=8",
)


@pytest.fixture(scope="module")
def autoencoder(tmp_path_factory):
    out = tmp_path_factory.mktemp("learn") / "run"
    request = Request(
        data=("shapes:2000",), recipe="hinton2006-laptop", settings=ROUNDED, out=out, device="cpu"
    )
    train(request)
    return AutoencoderRun(out, "cpu")


def test_scenes_of_several_things_are_odd_to_one_that_knows_single_ones(autoencoder):
    found = detect_anomalies(autoencoder, "shapes:100", "scenes:100")
    # Seen: 0.72, with 37 in a hundred found at 5 false alarms.
    assert found.autoencoder.roc_auc.value >= 0.65
    assert found.autoencoder.detection_rate.value > 2 * found.autoencoder.false_alarm_rate.value


def test_learned_codes_keep_more_than_jpeg_in_as_many_bytes(autoencoder, tmp_path):
    sources = autoencoder.read_sources("shapes:100")
    found = Compressor(autoencoder).compress(sources, tmp_path / "codes")
    # Seen: 22.4 dB at 0.22 bits a pixel, where JPEG has 20.9.
    assert found.quality.value >= 21
    rival = psnr_at(jpeg_rates(autoencoder.pixels(sources).numpy()), found.bits_per_pixel)
    assert rival is None or found.quality.value > rival


def test_what_training_foretells_of_codes_makes_files_smaller(autoencoder, tmp_path):
    sources = autoencoder.read_sources("shapes:100")
    compressor = Compressor(autoencoder)
    found = compressor.compress(sources, tmp_path / "codes")
    codes = compressor.to_codes(autoencoder.task.encode(sources))
    foretold = sum(t.bits[row].sum() for t, row in zip(compressor.tables, codes.T, strict=True))
    assert found.num_bytes == pytest.approx(HEADER_BYTES + foretold / 8, rel=0.001)
    # Seven equally likely numbers would take this many bits.
    assert foretold < 0.95 * codes.size * math.log2(7)
