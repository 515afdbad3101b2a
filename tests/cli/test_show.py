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


class TestAttribution:
    """Methods other than attention, and several side by side."""

    def test_terminal_shows_the_contributions_of_source_and_earlier_tokens(self, regard, tiny_run):
        result = regard("show", tiny_run.folder, SENTENCE, "--by", "erasure", "--target", "c b")
        assert result.lines[:2] == ["c b", "Shown: erasure"]
        heads = [line.split()[-1] for line in result.lines if "╭" in line]
        assert heads == ["a", "b", "c", "<eos>", "c", "b"]
        assert result.lines[-1].startswith("Probabilities: c ")

    def test_several_methods_are_measured(self, regard, tiny_run):
        methods = "attention,gradients,erasure"
        result = regard("show", tiny_run.folder, SENTENCE, "--by", methods)
        titles = ["attention", "gradient × input", "erasure"]
        assert [line for line in result.lines if line in titles] == titles
        measured = [line.split(":")[0] for line in result.lines[-4:]]
        assert measured == [*titles, "random scores"]
        assert all("comprehensiveness" in line for line in result.lines[-4:])

    def test_page_names_the_model_and_the_sentence(self, regard, tiny_run, tmp_path):
        path = tmp_path / "map.html"
        regard("show", tiny_run.folder, SENTENCE, "--by", "gradients,erasure", "-o", path)
        page = path.read_text(encoding="utf-8")
        for text in (
            str(tiny_run.folder),
            SENTENCE,
            "rnn → bahdanau",
            "gradient × input",
            "random",
        ):
            assert text in page
        assert page.count("<svg") == 1 and "<script" not in page and "http-equiv" not in page

    @pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
    def test_several_maps_are_saved_in_one_file(self, regard, tiny_run, tmp_path, ending):
        path = tmp_path / f"map.{ending}"
        result = regard("show", tiny_run.folder, SENTENCE, "--by", "gradients,erasure", "-o", path)
        assert result.lines[-1] == str(path) and path.stat().st_size > 1000

    def test_model_without_attention_has_other_methods(self, regard, tiny_run_without_attention):
        result = regard("show", tiny_run_without_attention.folder, SENTENCE, "--by", "gradients")
        assert result.code == 0 and "Shown: gradient × input" in result.lines

    def test_labels_of_images_are_explained_by_cells(self, regard, task_run, monkeypatch, tmp_path):
        run = task_run("classification")
        image = next(run.folder.parent.glob("*.png"))
        path = tmp_path / "map.svg"
        result = regard("show", run.folder, image, "--by", "gradients,erasure", "-o", path)
        assert result.lines[1] == "Shown: gradient × input, erasure"
        assert path.read_text(encoding="utf-8").count("<image ") == 3

    def test_language_model_explains_a_continuation(self, regard, task_run):
        folder = task_run("language_model").folder
        result = regard("show", folder, "the d", "--by", "erasure", "--target", "og")
        assert result.lines[:2] == ["og", "Shown: erasure"]

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (("--by", "lime"), "`by` must be one of 'attention'"),
            (("--by", "erasure", "--heads"), "are for attention alone"),
            (("--tree", "--by", "erasure"), "Leave out `--target`, `--alternatives`"),
            (("--of", "encoder"), "The encoder of this run has no self-attention"),
            (("--of", "head"), "`of` must be 'cross', 'encoder' or 'decoder', but is 'head'."),
        ],
    )
    def test_options_that_do_not_fit_are_refused(self, refused, tiny_run, options, message):
        assert message in refused("show", tiny_run.folder, SENTENCE, *options)


class TestHeads:
    """One map per layer and head, and self-attention."""

    @pytest.mark.parametrize(
        ("part", "first"), [("cross", "a"), ("encoder", "a"), ("decoder", "c")]
    )
    def test_each_head_has_a_map(self, regard, tiny_transformer_run, part, first):
        options = ("--heads", "--of", part, "--target", "c b a")
        result = regard("show", tiny_transformer_run.folder, SENTENCE, *options)
        titles = [line for line in result.lines if line.startswith("layer")]
        assert titles == ["layer 1, head 1", "layer 1, head 2"]
        heads = [line.split()[-1] for line in result.lines if "╭" in line]
        assert heads[part == "decoder"] == first

    def test_mean_of_self_attention_is_one_map(self, regard, tiny_transformer_run, tmp_path):
        path = tmp_path / "map.html"
        regard("show", tiny_transformer_run.folder, SENTENCE, "--of", "encoder", "-o", path)
        page = path.read_text(encoding="utf-8")
        assert "self-attention of the encoder, mean of 1 × 2 layers × heads" in page

    def test_alternatives_are_shown_for_each_token(self, regard, tiny_run):
        options = ("--alternatives", 2, "--target", "c b a")
        result = regard("show", tiny_run.folder, SENTENCE, *options)
        table = [line.split("│") for line in result.lines[-5:]]
        assert table[0][1].strip() == "Most likely tokens"
        assert [row[0].split()[0] for row in table[1:]] == ["c", "b", "a", "<eos>"]
        assert all(len(row[1].split()) == 4 for row in table[1:])

    def test_labels_have_no_alternatives(self, refused, task_run):
        run = task_run("classification")
        image = next(run.folder.parent.glob("*.png"))
        message = refused("show", run.folder, image, "--alternatives", 2)
        assert "`--alternatives` are for models that generate a target" in message
