"""Commands on latents: `regard sample` and `regard interpolate`."""

import re
from base64 import b64decode
from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from regard.runs.request import Request
from regard.runs.train import train
from regard.tasks.latents import interpolate
from regard.tasks.prediction import to_image

SMALL = (
    "model.encoder.encoder.embedding_dim=12",
    "model.encoder.encoder.dim=12",
    "model.encoder.bottleneck.dim=5",
    "model.decoder.embedding_dim=12",
    "model.decoder.dim=12",
    "train.max_epochs=0",
    "train.max_steps=20",
    "train.validate_every=20",
)
FIRST, LAST = "a b c", "e e d a"


def train_small(files, folder, recipe):
    return train(
        Request(
            data=(files.train,),
            valid=(files.valid,),
            test=(files.test,),
            recipe=recipe,
            settings=SMALL,
            out=folder,
            device="cpu",
        )
    )


@pytest.fixture(scope="module")
def variational(reverse_files, tmp_path_factory):
    return train_small(
        reverse_files, tmp_path_factory.mktemp("runs") / "variational", "bowman2016-laptop"
    )


@pytest.fixture(scope="module")
def plain(reverse_files, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "plain"
    return train_small(reverse_files, folder, "dai2015-autoencoder-laptop")


@pytest.mark.parametrize("arguments", [("sample",), ("interpolate", FIRST, LAST)])
def test_texts_are_written_to_text_files(regard, refused, variational, arguments, tmp_path):
    command, *ends = arguments
    message = refused(command, variational.folder, *ends, "--out", tmp_path / "texts.svg")
    assert message.startswith("`--out` must be a text file")
    assert not (tmp_path / "texts.svg").exists()
    out = tmp_path / "texts.txt"
    assert regard(command, variational.folder, *ends, "--out", out).lines == [str(out)]
    texts = regard(command, variational.folder, *ends).out
    assert out.read_text(encoding="utf-8") == texts


def test_beams_are_search_settings(regard, variational):
    arguments = ("interpolate", variational.folder, FIRST, LAST)
    assert regard(*arguments, "--beam", 3).out == regard(*arguments, "search.beams=3").out
    assert (
        regard(*arguments, "--beam", 1).out
        == regard("interpolate", "search.beams=1", *arguments[1:]).out
    )


def test_samples_depend_on_the_seed_alone(regard, variational):
    five = regard("sample", variational.folder, "-n", 5)
    assert five.code == 0 and len(five.lines) == 5
    assert regard("sample", variational.folder, "--num", 3).lines == five.lines[:3]
    overrides = ("search.temperature=1", "search.seed=2")
    sampled = regard("sample", variational.folder, *overrides, "-n", 5).lines
    assert sampled == regard("sample", variational.folder, *overrides, "-n", 5).lines
    assert sampled != five.lines


def test_ends_of_an_interpolation_are_reconstructions(regard, variational, tmp_path):
    result = regard("interpolate", variational.folder, FIRST, LAST, "--steps", 4)
    assert result.code == 0 and len(result.lines) == 4
    path = tmp_path / "ends.txt"
    path.write_text(f"{FIRST}\n{LAST}\n", encoding="utf-8")
    ends = regard("predict", variational.folder, path).lines
    assert [result.lines[0], result.lines[-1]] == ends


def test_interpolation_works_for_any_autoencoder(regard, plain):
    assert len(regard("interpolate", plain.folder, FIRST, LAST, "--steps", 2).lines) == 2


def test_evaluation_prints_scores_of_latents(regard, variational):
    result = regard("evaluate", variational.folder, variational.folder / "test.jsonl")
    assert result.code == 0
    for name in ("accuracy", "BLEU", "token accuracy", "ELBO", "KL", "active units"):
        assert any(line.startswith(name) for line in result.lines), name


def test_only_variational_latents_can_be_sampled(refused, plain, tiny_run):
    assert "the bottleneck of this run is not variational" in refused("sample", plain.folder)
    line = refused("sample", tiny_run.folder)
    assert line.startswith("This needs a run of an autoencoder, but the task of this run is 'gen")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((" ", LAST), "Both ends must have at least one word, but one is empty."),
        ((FIRST, LAST, "--steps", 1), "`steps` must be between 2 and 100000, but is 1."),
        ((FIRST, LAST, "train.seed=1"), "`train.seed` cannot be changed once a model is trained"),
    ],
)
def test_invalid_arguments_of_interpolate_are_refused(refused, plain, arguments, message):
    assert refused("interpolate", plain.folder, *arguments).startswith(message)


def test_zero_samples_are_refused(refused, variational):
    message = refused("sample", variational.folder, "-n", 0)
    assert message == "`num` must be between 1 and 100000, but is 0."
    assert refused("sample", variational.folder, "--seed", -1).startswith("`seed` must be between")


def test_too_many_samples_and_steps_are_refused(refused, variational, image_run):
    assert "`num` must be between 1 and" in refused("sample", variational.folder, "-n", 10**9)
    assert "`seed` must be between 0 and" in refused("sample", variational.folder, "--seed", 10**20)
    message = "`steps` must be between 2 and"
    assert message in refused("interpolate", variational.folder, FIRST, LAST, "--steps", 10**9)
    message = "A sheet holds at most 500 images, but 501 are requested. Request fewer."
    assert refused("sample", image_run.folder, "-n", 501) == message
    ends = ("shapes/0/1", "shapes/0/2")
    assert refused("interpolate", image_run.folder, *ends, "--steps", 501) == message


def test_long_interpolation_continues_in_the_next_row(regard, image_run, tmp_path):
    path = tmp_path / "interpolation.png"
    sizes = {}
    for steps in (12, 13):
        arguments = ("shapes/0/1", "shapes/0/2", "--steps", steps, "--out", path)
        assert regard("interpolate", image_run.folder, *arguments).code == 0
        with Image.open(path) as image:
            sizes[steps] = image.size
    assert sizes[13][0] == sizes[12][0] and sizes[13][1] > 1.5 * sizes[12][1]


def test_other_tasks_are_refused(refused, tiny_run):
    assert "needs a run of an autoencoder" in refused("interpolate", tiny_run.folder, "a", "b")


IMAGES = (
    "data.source.size=12",
    "data.target.size=12",
    "data.batch.max_sentences=8",
    "model.encoder.encoder.widths=[3,4]",
    "model.encoder.encoder.blocks=[1,1]",
    "model.encoder.bottleneck.dim=3",
    "model.generator.widths=[4,3]",
    "model.generator.blocks=[1,1]",
    "train.max_epochs=0",
    "train.max_steps=10",
    "train.validate_every=10",
)


@pytest.fixture(scope="module")
def image_run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "image_run"
    request = Request(
        data=("shapes:40",),
        recipe="kingma2014-laptop",
        settings=IMAGES,
        out=folder,
        device="cpu",
    )
    return train(request)


def read_images(path):
    """Images of an SVG sheet, in order."""
    found = re.findall(r"data:image/png;base64,([^\"]+)", path.read_text(encoding="utf-8"))
    return [np.asarray(Image.open(BytesIO(b64decode(one))).convert("RGB")) for one in found]


def test_sampled_images_are_saved_on_a_sheet(regard, image_run, tmp_path):
    path = tmp_path / "sheet.svg"
    result = regard("sample", image_run.folder, "-n", 3, "--out", path)
    assert (result.code, result.lines) == (0, [str(path)])
    assert len(read_images(path)) == 3


def test_ends_of_an_image_interpolation_are_reconstructions(regard, image_run, tmp_path):
    path = tmp_path / "strip.svg"
    names = ("shapes/0/1", "shapes/0/2")
    result = regard("interpolate", image_run.folder, *names, "--steps", 4, "--out", path)
    assert result.code == 0
    task = image_run.predictor
    ends = [best[0].image for best in task.predict(names)]
    between = task.decode(interpolate(*task.encode(names), 4))
    assert len(read_images(path)) == len(between) == 4
    for index, end in zip((0, -1), ends, strict=True):
        assert np.array_equal(to_image(between[index]), end)


def test_search_overrides_are_refused_for_images(refused, image_run, tmp_path):
    line = refused("sample", image_run.folder, "search.beams=2", "--out", tmp_path / "x.svg")
    assert line.startswith("`search.beams=2` is for models that search")


def test_unknown_plot_format_is_refused(refused, image_run):
    line = refused("sample", image_run.folder, "--out", "x.gif")
    assert line == "`--out` must end in .png, .svg, .pdf or .html, but is 'x.gif'."


def test_missing_images_are_refused(refused, image_run):
    assert "nowhere.png" in refused("interpolate", image_run.folder, "nowhere.png", "shapes/0/1")
