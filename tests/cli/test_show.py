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


def test_terminal_shows_the_answer_and_where_it_looked(regard, tiny_run):
    answer = regard("show", tiny_run.folder, SENTENCE)
    assert answer.code == 0
    assert answer.lines[0] == tiny_run.predictor.translate([SENTENCE])[0]
    assert len(answer.lines) > 4


def test_target_can_be_given(regard, tiny_run):
    answer = regard("show", tiny_run.folder, SENTENCE, "--target", "e e")
    assert answer.lines[0] == "e e"


def test_picture_can_be_saved(regard, tiny_run, tmp_path):
    path = tmp_path / "map.png"
    answer = regard("show", tiny_run.folder, SENTENCE, "--out", path)
    assert answer.lines[-1] == str(path)
    with Image.open(path) as image:
        assert min(image.size) > 100


def test_drawing_can_be_saved(regard, tiny_run, tmp_path):
    regard("show", tiny_run.folder, SENTENCE, "--out", tmp_path / "map.svg")
    assert ElementTree.parse(tmp_path / "map.svg").getroot().tag.endswith("}svg")


def test_page_can_be_saved(regard, tiny_run, tmp_path):
    regard("show", tiny_run.folder, SENTENCE, "--out", tmp_path / "map.html")
    assert (tmp_path / "map.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_unknown_kind_of_file_is_refused(refused, tiny_run, tmp_path):
    message = refused("show", tiny_run.folder, SENTENCE, "--out", tmp_path / "map.bmp")
    assert "must end in .png, .svg or .html, but is" in message
    assert not (tmp_path / "map.bmp").exists()


@pytest.mark.parametrize("sentence", ["", "  "])
def test_empty_sentence_is_refused(refused, tiny_run, sentence):
    message = refused("show", tiny_run.folder, sentence)
    assert message == "The sentence must have at least one word, but is empty."


def test_model_without_attention_says_so_and_translates(refused, tiny_run_without_attention):
    message = refused("show", tiny_run_without_attention.folder, SENTENCE)
    assert "holds a model without attention, so there is no map to show." in message


def test_what_is_copied_is_shown_with_its_probability(regard, reverse_files, tmp_path):
    words = ("data.is_joint=true", "model.copying.kind=pointer", "train.max_steps=1")
    run = train(reverse_files.request(tmp_path / "run", *words))
    answer = regard("show", run.folder, SENTENCE, "--target", "e d")
    assert answer.lines[:2] == ["e d", "Shown: copying"]
    told = [re.match(r" *(\S+) 0\.\d\d ", line) for line in answer.lines]
    assert [match[1] for match in told if match] == ["e", "d", "<eos>"]


class TestImages:
    """A model that looks at an image of two rows and three columns while it writes."""

    @pytest.fixture(autouse=True)
    def image(self, monkeypatch):
        attend = Predictor.attend
        image = np.full((20, 30, 3), 200, np.uint8)

        def attend_image(predictor, examples):
            weights = torch.eye(6)[None, None]  # (N, H, T, S)
            return [
                replace(
                    found,
                    source=cell_names((2, 3)),
                    weights=weights[:, :, : len(found.target)],
                    grid=(2, 3),
                    image=image,
                )
                for found in attend(predictor, examples)
            ]

        monkeypatch.setattr(Predictor, "attend", attend_image)

    def test_terminal_shows_the_image_under_each_piece(self, regard, tiny_run, monkeypatch):
        monkeypatch.setenv("COLUMNS", "130")
        answer = regard("show", tiny_run.folder, SENTENCE, "--target", "e d")
        assert answer.lines[0] == "e d"
        words, notes = (answer.lines[place].split() for place in (-3, -2))
        assert words == ["e", "d", "<eos>"]
        assert notes == ["max", "1.00"] * 3
        # Without colours the image is of shades: bright on the left, and dark where none looked.
        upper = answer.lines[2]
        assert upper[:30] == "▓" * 30
        assert upper[32:34] == "▓▓" and upper[58:60] == "  "

    @pytest.mark.parametrize("ending", ["png", "svg", "html"])
    def test_image_can_be_saved(self, regard, tiny_run, tmp_path, ending):
        path = tmp_path / f"map.{ending}"
        answer = regard("show", tiny_run.folder, SENTENCE, "--target", "e d", "--out", path)
        assert answer.lines == ["e d", str(path)]
        if ending == "png":
            with Image.open(path) as image:
                assert image.width > 3 * image.height
        else:
            assert path.read_text(encoding="utf-8").count("<image ") == 4

    def test_unknown_kind_of_file_is_refused(self, refused, tiny_run, tmp_path):
        message = refused("show", tiny_run.folder, SENTENCE, "--out", tmp_path / "map.bmp")
        assert "must end in .png, .svg or .html, but is" in message
