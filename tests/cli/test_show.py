import re
from xml.etree import ElementTree

import pytest
from PIL import Image

from regard.tasks.learning import train

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
