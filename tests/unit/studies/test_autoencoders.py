"""What is asked of an autoencoder: two dimensions, odd items, few bytes."""

import json

import numpy as np
import pytest
import torch

from regard.core.errors import CheckpointError, ConfigError, DataError
from regard.data.video.next_frame import FirstFrames
from regard.metrics.vision.images import squared_errors
from regard.models.pca import Pca
from regard.runs.recipes import load_recipe
from regard.runs.request import Request
from regard.runs.train import train
from regard.studies.anomalies import VALIDATION_ERRORS, detect_anomalies, find_threshold
from regard.studies.autoencoder import TrainedAutoencoder
from regard.studies.compression.codec import PRIOR, Compressor
from regard.studies.reduction import PCA, reduce
from regard.tasks.image_to_image.task import ImageToImageTask
from tests.small_autoencoder import recipe

NORMAL, ODD = "shapes:60,only=circle,square,star", "shapes:60,without=circle,square,star"


@pytest.fixture(scope="module")
def make(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")

    def make_run(kind, *settings):
        path, out = folder / f"{kind}.toml", folder / f"{kind}{len(settings)}"
        path.write_text(recipe(kind))
        request = Request(
            data=(NORMAL,), recipe=str(path), settings=settings, out=out, device="cpu"
        )
        train(request)
        return out

    return make_run


@pytest.fixture(scope="module")
def plain(make):
    return make("plain")


@pytest.fixture(scope="module")
def rounded(make):
    return make("rounded")


@pytest.fixture
def autoencoder(plain):
    return TrainedAutoencoder(plain, "cpu")


def test_rival_is_fitted_to_what_the_run_learned_from(autoencoder):
    sources = [example.source for example in autoencoder.splits.train]
    rival = autoencoder.fit_pca(3)
    expected = Pca.fit(autoencoder.pixels(sources).flatten(1) / 255, 3)
    assert torch.allclose(rival.directions, expected.directions, atol=1e-4)


def test_errors_are_those_of_images_that_come_back(autoencoder):
    sources = autoencoder.read_sources(ODD)[:5]
    back = autoencoder.task.decode(autoencoder.task.encode(sources))
    expected = squared_errors(back.numpy(), autoencoder.pixels(sources).numpy())
    assert autoencoder.reconstruction_errors(sources) == pytest.approx(expected)
    # Another way to the same: images drawn without any code in hand.
    answers = [found[0].image for found in autoencoder.task.predict(sources)]
    right = np.repeat(autoencoder.pixels(sources).numpy(), 3, axis=1).transpose(0, 2, 3, 1)
    by_hand = ((np.stack(answers) / 255 - right / 255) ** 2).mean((1, 2, 3))
    assert autoencoder.reconstruction_errors(sources) == pytest.approx(by_hand, abs=1e-6)


def test_rival_with_all_components_loses_nothing(autoencoder):
    sources = autoencoder.fit_sources[:5]
    assert autoencoder.pca_errors(sources, autoencoder.fit_pca(64)) == pytest.approx(
        np.zeros(5), abs=1e-5
    )


def test_numbered_picture_stands_for_itself(autoencoder):
    assert autoencoder.read_sources("shapes/0/3") == ["shapes/0/3"]


def test_wide_codes_are_brought_to_two_numbers(autoencoder):
    found = reduce(autoencoder, "shapes:60", num_bootstrap=0)
    (own, plane), (rival, other) = found.planes.items()
    assert (own, rival) == ("latents, 3 dimensions reduced to 2 by PCA", PCA)
    assert plane.places.shape == other.places.shape == (len(found.labels), 2)
    assert 0 < other.error.value < 0.2
    told = json.loads(json.dumps(found.to_dict()))
    assert len(told["planes"][PCA]["places"]) == len(told["labels"])
    assert len(found.draw().axes) == 2


def test_threshold_lets_the_asked_share_of_validation_items_through(autoencoder):
    errors = autoencoder.reconstruction_errors(
        [example.source for example in autoencoder.splits.valid]
    )
    for share in (0.05, 0.3):
        assert (errors > find_threshold(autoencoder, share)).mean() <= share


def test_threshold_is_known_without_the_data_it_came_from(make):
    run = make("plain", "seed=4", "data.seed=0")
    threshold = find_threshold(TrainedAutoencoder(run, "cpu"))
    path = run / "config.json"
    config = json.loads(path.read_text())
    config["about"]["data"] = ["gone.tsv"]
    path.write_text(json.dumps(config))
    autoencoder = TrainedAutoencoder(run, "cpu")
    assert find_threshold(autoencoder) == threshold
    (run / VALIDATION_ERRORS).unlink()
    with pytest.raises(DataError, match=r"'gone.tsv' is neither a file nor a data set"):
        find_threshold(autoencoder)


def test_anomalies_tell_both_judges_on_the_same_items(autoencoder):
    found = detect_anomalies(autoencoder, NORMAL, ODD)
    told = json.loads(json.dumps(found.to_dict()))
    assert (told["width"], told["num_normal"]) == (3, len(autoencoder.read_sources(NORMAL)))
    difference = found.own.area.value - found.rival.area.value
    assert found.difference.value == pytest.approx(difference)
    assert len(found.draw().axes) == 2


def test_compressed_images_come_back_as_the_model_draws_them(rounded, tmp_path):
    autoencoder = TrainedAutoencoder(rounded, "cpu")
    sources = autoencoder.read_sources("shapes:60")
    found = Compressor(autoencoder).compress(sources, tmp_path / "codes")
    assert found.num_bytes == (tmp_path / "codes").stat().st_size
    assert found.bits_per_pixel == 8 * found.num_bytes / (len(sources) * 64)
    # Another process that knows the run alone restores the same.
    back = Compressor(TrainedAutoencoder(rounded, "cpu")).restore(tmp_path / "codes")
    assert torch.equal(back, autoencoder.reconstruct(sources))


def test_expectations_are_counted_once_and_anew_for_other_weights(rounded, tmp_path):
    autoencoder = TrainedAutoencoder(rounded, "cpu")
    counts = Compressor(autoencoder).counts
    assert {sum(column) for column in counts} == {len(autoencoder.fit_sources)}
    path = rounded / PRIOR
    kept = json.loads(path.read_text())
    path.write_text(json.dumps({**kept, "value": [[7] * 5] * 3}))
    assert Compressor(autoencoder).counts == [[7] * 5] * 3
    path.write_text(json.dumps({**kept, "weights": "others", "value": [[7] * 5] * 3}))
    assert Compressor(autoencoder).counts == counts


def test_codes_of_another_run_are_refused(make, rounded, tmp_path):
    autoencoder = TrainedAutoencoder(rounded, "cpu")
    Compressor(autoencoder).compress(["shapes/0/1"], tmp_path / "codes")
    other = make("rounded", "seed=2")
    with pytest.raises(DataError, match="was written by another model"):
        Compressor(TrainedAutoencoder(other, "cpu")).restore(tmp_path / "codes")


def test_codes_that_are_no_whole_numbers_are_refused(autoencoder):
    with pytest.raises(ConfigError, match=r"Train with `model.encoder.bottleneck.kind=rounded`"):
        Compressor(autoencoder)


def test_run_without_codes_is_refused(tiny_run):
    with pytest.raises(ConfigError, match="needs a run of an autoencoder"):
        TrainedAutoencoder(tiny_run.folder, "cpu")


def test_changed_training_data_is_noticed(make, tmp_path):
    run = make("plain", "seed=3")
    path = run / "config.json"
    config = json.loads(path.read_text())
    config["about"]["data"] = [ODD]
    path.write_text(json.dumps(config))
    with pytest.raises(CheckpointError, match="is not any more what"):
        _ = TrainedAutoencoder(run, "cpu").splits
    del config["about"]["data"]
    path.write_text(json.dumps(config))
    with pytest.raises(CheckpointError, match="its training data is not known"):
        _ = TrainedAutoencoder(run, "cpu").splits


def test_videos_are_refused(monkeypatch):
    recipe = load_recipe("next-frame-laptop")
    source = FirstFrames(recipe.data.source, (0.5,) * 3, (1.0,) * 3)
    task = ImageToImageTask.fresh(recipe, {"source": source}, device=torch.device("cpu"))
    monkeypatch.setattr("regard.studies.autoencoder.load_one", lambda *_: task)
    with pytest.raises(ConfigError, match="images or sentences is needed, but some-run reads vid"):
        TrainedAutoencoder("some-run")
