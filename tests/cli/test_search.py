"""Options of search on the command line: alternatives, beam trees and refused settings."""

import json
from xml.etree import ElementTree

import pytest

from regard.search.settings import SearchConfig
from regard.tasks.decoding.beam_tree import find_beam_tree

SENTENCE = "a b c"


def test_alternatives_are_part_of_json(regard, tiny_run):
    result = regard(
        "predict", tiny_run.folder, SENTENCE, "--json", "--alternatives", 3, "--nbest", 2
    )
    (row,) = map(json.loads, result.lines)
    for prediction in row["predictions"]:
        assert len(prediction["alternatives"]) == len(prediction["tokens"])
        assert all(len(position) == 3 for position in prediction["alternatives"])
    plain = json.loads(
        regard("predict", tiny_run.folder, SENTENCE, "--json", "--nbest", 2).lines[0]
    )
    for before, after in zip(plain["predictions"], row["predictions"], strict=True):
        assert {**after, "alternatives": None} == {**before, "alternatives": None}


def test_lines_of_a_file_have_alternatives(regard, tiny_run, tmp_path):
    path = tmp_path / "lines.txt"
    path.write_text("a b\n\ne d c\n", encoding="utf-8")
    result = regard("predict", tiny_run.folder, path, "--json", "--alternatives", 2)
    rows = [json.loads(line)["predictions"][0] for line in result.lines]
    assert ["alternatives" in row for row in rows] == [True, False, True]


def test_tree_is_written_beside_the_prediction(regard, tiny_run, tmp_path):
    path = tmp_path / "tree.json"
    result = regard("predict", tiny_run.folder, SENTENCE, "--beam", 3, "--tree", path)
    assert result.lines == [tiny_run.predictor.translate(SENTENCE, search=SearchConfig(beams=3))]
    tree = find_beam_tree(tiny_run.predictor, SENTENCE, search=SearchConfig(beams=3))
    assert json.loads(path.read_text(encoding="utf-8")) == tree.to_dict()


def test_tree_of_a_sentence_from_standard_input(regard, tiny_run, tmp_path):
    path = tmp_path / "tree.json"
    result = regard("predict", tiny_run.folder, "--tree", path, "--nbest", 2, stdin=f"{SENTENCE}\n")
    assert len(result.lines) == 2 and path.exists()


def test_tree_is_plotted(regard, tiny_run, tmp_path):
    path = tmp_path / "tree.svg"
    result = regard("show", tiny_run.folder, SENTENCE, "--tree", "--beam", 3, "--out", path)
    assert result.lines[-1] == str(path)
    assert ElementTree.parse(path).getroot().tag.endswith("}svg")


def test_tree_is_printed(regard, tiny_run):
    result = regard("show", tiny_run.folder, SENTENCE, "--tree", "--beam", 3)
    assert result.lines[1] == "<sos>" and "#1" in result.out and "└─" in result.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--beam", "0"), "`search.beams` must be between 1 and 1000, but is 0."),
        (("search.groups=2", "--beam", "5"), "`search.groups` must divide `beams` (5), but is 2."),
        (("search.groups=0",), "`search.groups` must be between 1 and 1000, but is 0."),
        (("--nbest", "3", "--beam", "2"), "`nbest` must be at most the number of beams (2)"),
        (("--nbest", "0"), "`nbest` must be at least 1, but is 0."),
        (("search.stopping=early",), "`search.stopping` must be one of 'heuristic'"),
        (("search.length_penalty_kind=gmnt",), "Did you mean 'gnmt'?"),
        (("search.consensus_metric=ter",), "`search.consensus_metric` must be one of"),
        (("search.typical_p=1.5",), "`search.typical_p` must be between 0.0 and 1.0"),
        (("search.coverage_penalty=-1",), "`search.coverage_penalty` must be between 0.0"),
        (("search.diversity=nan",), "`search.diversity` must be finite, but is nan."),
        (("search.coverage_penalty=1", "search.consensus=4"), "`consensus` is above 0"),
        (("--alternatives", "3"), "`--alternatives` needs `--json`"),
        (("--alternatives", "0", "--json"), "`--alternatives` must be at least 1, but is 0."),
        (("--tree", "tree.svg"), "`--tree` must end in .json"),
        (("--tree", "t.json", "search.temperature=1"), "A beam tree needs beam search"),
    ],
)
def test_bad_options_are_refused(refused, tiny_run, arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert message in refused("predict", tiny_run.folder, SENTENCE, *arguments)
    assert not list(tmp_path.iterdir())


def test_groups_and_beams_may_change_together(regard, tiny_run):
    result = regard("predict", tiny_run.folder, SENTENCE, "--beam", 6, "search.groups=3")
    assert result.code == 0 and len(result.lines) == 1


def test_a_tree_of_several_sentences_is_refused(refused, tiny_run, tmp_path):
    path = tmp_path / "lines.txt"
    path.write_text("a b\ne d c\n", encoding="utf-8")
    message = refused("predict", tiny_run.folder, path, "--tree", tmp_path / "tree.json")
    assert "`--tree` is for one sentence" in message
    assert not (tmp_path / "tree.json").exists()


def test_coverage_without_attention_is_refused(refused, tiny_run_without_attention):
    folder = tiny_run_without_attention.folder
    message = refused("predict", folder, SENTENCE, "search.coverage_penalty=0.2")
    assert "cross-attention, but is 0.2" in message


def test_details_of_other_tasks_are_refused(refused, task_run):
    folder = task_run("classification").folder
    for option, value in (("--tree", "tree.json"), ("--alternatives", 2)):
        message = refused("predict", folder, "image.png", option, value, "--json")
        assert f"`{option}` is for models that generate tokens" in message


def test_a_tree_needs_no_target_and_no_reranker(refused, tiny_run):
    folder = tiny_run.folder
    for options in (("--target", "b a"), ("--alternatives", 2), ("--heads",)):
        assert "Leave out `--target`" in refused("show", folder, SENTENCE, "--tree", *options)
    message = refused("predict", folder, SENTENCE, "--tree", "t.json", "--rerank", folder)
    assert "cannot be used with `--rerank`" in message
