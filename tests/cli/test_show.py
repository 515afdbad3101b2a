import re
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from PIL import Image

from regard.runs.train import train
from regard.tasks.generation.task import Predictor
from regard.tasks.prediction import cell_names

SENTENCE = "a b c"


def test_terminal_shows_the_prediction_and_attention_weights(regard, tiny_run):
    result = regard("show", tiny_run.folder, SENTENCE)
    assert result.code == 0
    assert result.lines[0] == tiny_run.predictor.translate([SENTENCE])[0]
    assert len(result.lines) > 4


def test_target_can_be_given(regard, tiny_run):
    result = regard("show", tiny_run.folder, SENTENCE, "--target", "e e")
    assert result.lines[0] == "e e"


def test_plot_can_be_saved_as_png(regard, tiny_run, tmp_path):
    path = tmp_path / "map.png"
    result = regard("show", tiny_run.folder, SENTENCE, "--out", path)
    assert result.lines[-1] == str(path)
    with Image.open(path) as image:
        assert min(image.size) > 100


def test_plot_can_be_saved_as_svg(regard, tiny_run, tmp_path):
    regard("show", tiny_run.folder, SENTENCE, "--out", tmp_path / "map.svg")
    assert ElementTree.parse(tmp_path / "map.svg").getroot().tag.endswith("}svg")


def test_plot_can_be_saved_as_pdf(regard, tiny_run, tmp_path):
    for name in ("map.pdf", "again.pdf"):
        result = regard("show", tiny_run.folder, SENTENCE, "-o", tmp_path / name)
        assert result.lines[-1] == str(tmp_path / name)
    assert (tmp_path / "map.pdf").read_bytes().startswith(b"%PDF")
    assert (tmp_path / "map.pdf").read_bytes() == (tmp_path / "again.pdf").read_bytes()


def test_unknown_kind_of_file_is_refused_before_the_run_is_loaded(refused, tmp_path):
    assert "`--out` must end in" in refused("show", tmp_path / "none", SENTENCE, "-o", "map.bmp")


def test_overrides_change_the_search(regard, tiny_run):
    arguments = ("search.max_ratio=0", "search.max_extra=1")
    first = regard("show", tiny_run.folder, SENTENCE, *arguments)
    assert len(first.lines[0].split()) == 1
    assert regard("show", *arguments, tiny_run.folder, SENTENCE).out == first.out
    assert regard("show", tiny_run.folder, SENTENCE, "--beam", 1).code == 0


def test_file_in_place_of_a_sentence_is_refused(refused, tiny_run, reverse_files):
    assert "is a file" in refused("show", tiny_run.folder, reverse_files.test)
    assert refused("show", tiny_run.folder, "none.txt") == "none.txt does not exist."


def test_plot_can_be_saved_as_html(regard, tiny_run, tmp_path):
    regard("show", tiny_run.folder, SENTENCE, "--out", tmp_path / "map.html")
    assert (tmp_path / "map.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_unknown_kind_of_file_is_refused(refused, tiny_run, tmp_path):
    message = refused("show", tiny_run.folder, SENTENCE, "--out", tmp_path / "map.bmp")
    assert "`--out` must end in .png, .svg, .pdf or .html, but is" in message
    assert not (tmp_path / "map.bmp").exists()


@pytest.mark.parametrize("sentence", ["", "  "])
def test_empty_sentence_is_refused(refused, tiny_run, sentence):
    message = refused("show", tiny_run.folder, sentence)
    assert message == "The sentence must have at least one word, but is empty."


def test_model_without_attention_is_refused(refused, tiny_run_without_attention):
    message = refused("show", tiny_run_without_attention.folder, SENTENCE)
    assert "has no attention, so there is no map to show." in message


def test_copied_tokens_are_shown_with_their_probability(regard, reverse_files, tmp_path):
    words = ("data.is_joint=true", "model.copying.kind=pointer", "train.max_steps=1")
    run = train(reverse_files.request(tmp_path / "run", *words))
    result = regard("show", run.folder, SENTENCE, "--target", "e d")
    assert result.lines[:2] == ["e d", "Shown: copying"]
    rows = [re.match(r" *(\S+) 0\.\d\d ", line) for line in result.lines]
    assert [row[1] for row in rows if row] == ["e", "d", "<eos>"]


class TestImages:
    """A model that attends to an image grid of two rows and three columns."""

    @pytest.fixture(autouse=True)
    def image(self, monkeypatch):
        attend = Predictor.attend
        image = np.full((20, 30, 3), 200, np.uint8)

        def attend_image(predictor, examples):
            weights = torch.eye(6)[None, None]  # (N, H, T, S)
            return [
                replace(
                    attention,
                    source=cell_names((2, 3)),
                    weights=weights[:, :, : len(attention.target)],
                    grid=(2, 3),
                    image=image,
                )
                for attention in attend(predictor, examples)
            ]

        monkeypatch.setattr(Predictor, "attend", attend_image)

    def test_terminal_shows_the_image_for_each_token(self, regard, tiny_run, monkeypatch):
        monkeypatch.setenv("COLUMNS", "130")
        result = regard("show", tiny_run.folder, SENTENCE, "--target", "e d")
        assert result.lines[0] == "e d"
        words, notes = (result.lines[index].split() for index in (-4, -3))
        assert words == ["e", "d", "<eos>"]
        assert notes == ["max", "1.00"] * 3
        # Without colours the image has shades: bright at large weights, dark at small ones.
        upper = result.lines[2]
        assert upper[:30] == "▓" * 30
        assert upper[32:34] == "▓▓" and upper[58:60] == "  "

    @pytest.mark.parametrize("ending", ["png", "svg", "pdf", "html"])
    def test_image_can_be_saved(self, regard, tiny_run, tmp_path, ending):
        path = tmp_path / f"map.{ending}"
        result = regard("show", tiny_run.folder, SENTENCE, "--target", "e d", "--out", path)
        assert result.lines == ["e d", str(path)]
        if ending == "png":
            with Image.open(path) as image:
                assert image.width > 3 * image.height
        elif ending == "pdf":
            assert path.read_bytes().startswith(b"%PDF")
        else:
            assert path.read_text(encoding="utf-8").count("<image ") == 4

    def test_unknown_kind_of_file_is_refused(self, refused, tiny_run, tmp_path):
        message = refused("show", tiny_run.folder, SENTENCE, "--out", tmp_path / "map.bmp")
        assert "`--out` must end in .png, .svg, .pdf or .html, but is" in message


def test_a_recording_given_to_a_model_of_text_is_refused(refused, tiny_run, tmp_path):
    path = tmp_path / "o.mp3"
    path.write_bytes(b"ID3\4\0\0")
    assert "is a recording (MP3), but must be text." in refused("show", tiny_run.folder, path)
