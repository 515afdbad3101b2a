import json

import pytest

SOURCES = ["a b c", "", "e d", "b a c d"]


@pytest.fixture
def sources(tmp_path):
    path = tmp_path / "sources.txt"
    path.write_text("\n".join(SOURCES) + "\n", encoding="utf-8")
    return path


def test_one_line_in_is_one_line_out(regard, tiny_run, sources):
    answer = regard("predict", tiny_run.folder, sources)
    assert answer.lines == tiny_run.predictor.translate(SOURCES)
    assert answer.lines[1] == ""


def test_standard_input_is_read_when_no_file_is_given(regard, tiny_run, sources):
    from_file = regard("predict", tiny_run.folder, sources)
    text = sources.read_text(encoding="utf-8")
    assert regard("predict", tiny_run.folder, stdin=text).out == from_file.out
    assert regard("predict", tiny_run.folder, "-", stdin=text).out == from_file.out


def test_no_lines_in_are_no_lines_out(regard, tiny_run):
    answer = regard("predict", tiny_run.folder, stdin="")
    assert (answer.code, answer.out) == (0, "")


def test_lines_in_parts_come_out_in_order(regard, tiny_run, sources, monkeypatch):
    whole = regard("predict", tiny_run.folder, sources)
    monkeypatch.setattr("regard.cli.predict.CHUNK", 2)
    assert regard("predict", tiny_run.folder, sources).out == whole.out


def test_several_answers_have_line_number_log_probability_and_text(regard, tiny_run, sources):
    answer = regard("predict", tiny_run.folder, sources, "--nbest", 3)
    rows = [line.split("\t") for line in answer.lines]
    assert [row[0] for row in rows] == ["1", "1", "1", "2", "3", "3", "3", "4", "4", "4"]
    best = tiny_run.predictor.predict(["a b c"], num_best=3)[0]
    assert rows[:3] == [["1", f"{one.log_prob:.4f}", one.text] for one in best]


def test_more_answers_than_the_recipe_has_beams_mean_more_beams(regard, tiny_run):
    answer = regard("predict", tiny_run.folder, "--nbest", 6, stdin="a b c\n")
    assert len(answer.lines) == 6


def test_json_holds_everything(regard, tiny_run, sources):
    answer = regard("predict", tiny_run.folder, sources, "--json", "--nbest", 2)
    rows = [json.loads(line) for line in answer.lines]
    assert [row["source"] for row in rows] == SOURCES
    best, second = rows[0]["predictions"]
    assert set(best) == {"text", "log_prob", "tokens", "token_log_probs"}
    assert best["text"] != second["text"]


def test_beam_of_one_is_greedy_search(regard, tiny_run, sources):
    greedy = regard("predict", tiny_run.folder, sources, "--beam", 1)
    assert greedy.code == 0
    assert len(greedy.lines) == len(SOURCES)
