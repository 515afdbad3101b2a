"""Studies of image autoencoders: dimensionality reduction, anomalies, compression."""

import json

import numpy as np
import pytest
import torch

from regard.core.checksums import CHECKSUMS
from regard.core.errors import CheckpointError, ConfigError, DataError
from regard.data.video.next_frame import FirstFrames
from regard.metrics.vision.images import image_mse
from regard.models.pca import Pca
from regard.runs.recipes import load_recipe
from regard.runs.request import Request
from regard.runs.train import train
from regard.studies.anomalies import VALIDATION_ERRORS, detect_anomalies, find_threshold
from regard.studies.autoencoder import AutoencoderRun
from regard.studies.compression.codec import PRIOR, Compressor
from regard.studies.reduction import PCA, reduce
from regard.tasks.image_to_image.task import ImageToImageTask
from tests.small_autoencoder import recipe

NORMAL, ANOMALOUS = "shapes:60,only=circle,square,star", "shapes:60,without=circle,square,star"


@pytest.fixture(scope="module")
def train_run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")

    def train_kind(kind, *settings):
        path, out = folder / f"{kind}.toml", folder / f"{kind}{len(settings)}"
        path.write_text(recipe(kind))
        request = Request(
            data=(NORMAL,), recipe=str(path), settings=settings, out=out, device="cpu"
        )
        train(request)
        return out

    return train_kind


@pytest.fixture(scope="module")
def plain(train_run):
    return train_run("plain")


@pytest.fixture(scope="module")
def rounded(train_run):
    return train_run("rounded")


@pytest.fixture
def autoencoder(plain):
    return AutoencoderRun(plain, "cpu")


def test_pca_is_fitted_to_the_training_data(autoencoder):
    sources = [example.source for example in autoencoder.splits.train]
    pca = autoencoder.fit_pca(3)
    expected = Pca.fit(autoencoder.pixels(sources).flatten(1) / 255, 3)
    assert torch.allclose(pca.directions, expected.directions, atol=1e-4)


def test_errors_are_those_of_decoded_images(autoencoder):
    sources = autoencoder.read_sources(ANOMALOUS)[:5]
    back = autoencoder.task.decode(autoencoder.task.encode(sources))
    expected = image_mse(back.numpy(), autoencoder.pixels(sources).numpy())
    assert autoencoder.reconstruction_errors(sources) == pytest.approx(expected)
    # The same errors from predicted images.
    images = [predictions[0].image for predictions in autoencoder.task.predict(sources)]
    right = np.repeat(autoencoder.pixels(sources).numpy(), 3, axis=1).transpose(0, 2, 3, 1)
    by_hand = ((np.stack(images) / 255 - right / 255) ** 2).mean((1, 2, 3))
    assert autoencoder.reconstruction_errors(sources) == pytest.approx(by_hand, abs=1e-6)


def test_pca_with_all_components_has_no_error(autoencoder):
    sources = autoencoder.fit_sources[:5]
    assert autoencoder.pca_errors(sources, autoencoder.fit_pca(64)) == pytest.approx(
        np.zeros(5), abs=1e-5
    )


def test_reference_of_a_built_in_image_is_one_source(autoencoder):
    assert autoencoder.read_sources("shapes/0/3") == ["shapes/0/3"]


def test_latents_are_reduced_to_two_dimensions(autoencoder):
    result = reduce(autoencoder, "shapes:60", num_bootstrap=0)
    (name, latents), (pca_name, pca) = result.projections.items()
    assert (name, pca_name) == ("latents, 3 dimensions reduced to 2 by PCA", PCA)
    assert latents.points.shape == pca.points.shape == (len(result.labels), 2)
    assert 0 < pca.error.value < 0.2
    values = json.loads(json.dumps(result.to_dict()))
    assert len(values["planes"][PCA]["points"]) == len(values["labels"])
    assert len(result.plot().axes) == 2


def test_threshold_flags_at_most_the_given_share_of_validation_items(autoencoder):
    errors = autoencoder.reconstruction_errors(
        [example.source for example in autoencoder.splits.valid]
    )
    for share in (0.05, 0.3):
        assert (errors > find_threshold(autoencoder, share)).mean() <= share


def test_threshold_is_cached_without_the_training_data(train_run):
    run = train_run("plain", "seed=4", "data.seed=0")
    threshold = find_threshold(AutoencoderRun(run, "cpu"))
    path = run / "config.json"
    config = json.loads(path.read_text())
    config["about"]["data"] = ["gone.tsv"]
    path.write_text(json.dumps(config))
    (run / CHECKSUMS).unlink()
    autoencoder = AutoencoderRun(run, "cpu")
    assert find_threshold(autoencoder) == threshold
    (run / VALIDATION_ERRORS).unlink()
    with pytest.raises(DataError, match="'gone.tsv' does not exist"):
        find_threshold(autoencoder)


def test_autoencoder_and_pca_are_compared_on_the_same_items(autoencoder):
    result = detect_anomalies(autoencoder, NORMAL, ANOMALOUS)
    values = json.loads(json.dumps(result.to_dict()))
    assert (values["width"], values["num_normal"]) == (3, len(autoencoder.read_sources(NORMAL)))
    difference = result.autoencoder.roc_auc.value - result.pca.roc_auc.value
    assert result.difference.value == pytest.approx(difference)
    assert len(result.plot().axes) == 2


def test_restored_images_equal_the_reconstruction(rounded, tmp_path):
    autoencoder = AutoencoderRun(rounded, "cpu")
    sources = autoencoder.read_sources("shapes:60")
    result = Compressor(autoencoder).compress(sources, tmp_path / "codes")
    assert result.num_bytes == (tmp_path / "codes").stat().st_size
    assert result.bits_per_pixel == 8 * result.num_bytes / (len(sources) * 64)
    # A compressor loaded from the same run restores the same images.
    back = Compressor(AutoencoderRun(rounded, "cpu")).restore(tmp_path / "codes")
    assert torch.equal(back, autoencoder.reconstruct(sources))


def test_code_frequencies_are_cached_until_weights_change(rounded, tmp_path):
    autoencoder = AutoencoderRun(rounded, "cpu")
    counts = Compressor(autoencoder).counts
    assert {sum(column) for column in counts} == {len(autoencoder.fit_sources)}
    path = rounded / PRIOR
    cache = json.loads(path.read_text())
    path.write_text(json.dumps({**cache, "value": [[7] * 5] * 3}))
    assert Compressor(autoencoder).counts == [[7] * 5] * 3
    path.write_text(json.dumps({**cache, "weights": "others", "value": [[7] * 5] * 3}))
    assert Compressor(autoencoder).counts == counts


def test_codes_of_another_run_are_refused(train_run, rounded, tmp_path):
    autoencoder = AutoencoderRun(rounded, "cpu")
    Compressor(autoencoder).compress(["shapes/0/1"], tmp_path / "codes")
    other = train_run("rounded", "seed=2")
    with pytest.raises(DataError, match="was written by another model"):
        Compressor(AutoencoderRun(other, "cpu")).restore(tmp_path / "codes")


def test_codes_that_are_not_integers_are_refused(autoencoder):
    with pytest.raises(ConfigError, match=r"Train with `model.encoder.bottleneck.kind=rounded`"):
        Compressor(autoencoder)


def test_run_without_latents_is_refused(tiny_run):
    with pytest.raises(ConfigError, match="needs a run of an autoencoder"):
        AutoencoderRun(tiny_run.folder, "cpu")


def test_changed_training_data_is_noticed(train_run, tmp_path):
    run = train_run("plain", "seed=3")
    path = run / "config.json"
    config = json.loads(path.read_text())
    config["about"]["data"] = [ANOMALOUS]
    path.write_text(json.dumps(config))
    (run / CHECKSUMS).unlink()
    with pytest.raises(CheckpointError, match="has changed since"):
        _ = AutoencoderRun(run, "cpu").splits
    del config["about"]["data"]
    path.write_text(json.dumps(config))
    with pytest.raises(CheckpointError, match="its training data is not known"):
        _ = AutoencoderRun(run, "cpu").splits


def test_videos_are_refused(monkeypatch):
    recipe = load_recipe("next-frame-laptop")
    source = FirstFrames(recipe.data.source, (0.5,) * 3, (1.0,) * 3)
    task = ImageToImageTask.from_scratch(recipe, {"source": source}, device=torch.device("cpu"))
    monkeypatch.setattr("regard.studies.autoencoder.load_one", lambda *_: task)
    with pytest.raises(ConfigError, match="images or sentences .* some-run .* videos"):
        AutoencoderRun("some-run")
