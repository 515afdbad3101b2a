import json
import shutil

import pytest


def test_every_score_is_printed_with_its_signature(regard, tiny_run, reverse_files):
    result = regard("evaluate", tiny_run.folder, reverse_files.test)
    assert result.code == 0
    names = [line.split("  ")[0].split()[0] for line in result.lines[:5]]
    assert names == ["BLEU", "chrF2", "accuracy", "lecture", "AER"]
    assert "|tok:13a|" in result.lines[0]
    assert "By length:" in result.lines
    assert "By tag:" in result.lines


def test_json_equals_the_scores_of_training(regard, tiny_run, reverse_files):
    result = regard("evaluate", tiny_run.folder, reverse_files.test, "--json")
    values = json.loads(result.out)
    measured = tiny_run.evaluation.results
    assert {name: score["value"] for name, score in values["scores"].items()} == pytest.approx(
        {name: result.value for name, result in measured.items()}
    )
    assert values["num_examples"] == 30
    assert {"command", "regard", "torch", "hardware"} <= set(values)


def test_two_line_aligned_files_are_pairs(regard, tiny_run, tmp_path):
    for name, text in (("source", "a b\nc d\n"), ("target", "b a\nd c\n")):
        (tmp_path / name).write_text(text, encoding="utf-8")
    result = regard("evaluate", tiny_run.folder, tmp_path / "source", tmp_path / "target", "--json")
    assert json.loads(result.out)["num_examples"] == 2


def test_further_columns_are_references(regard, tiny_run, tmp_path):
    output = regard("predict", tiny_run.folder, stdin="a b c\n").out.strip()
    (tmp_path / "pairs.tsv").write_text(f"a b c\te e e e\t{output}\n", encoding="utf-8")
    arguments = ("evaluate", tiny_run.folder, tmp_path / "pairs.tsv", "--json")
    for columns, value in (("source,target", 0), ("source, target, target", 100)):
        result = regard(*arguments, "--columns", columns)
        assert json.loads(result.out)["scores"]["accuracy"]["value"] == value


def test_wrong_columns_are_refused(refused, tiny_run, reverse_files):
    message = refused("evaluate", tiny_run.folder, reverse_files.test, "--columns", "word,target")
    assert "line 1, has no key `word`" in message


def test_beams_can_be_chosen(regard, tiny_run, reverse_files):
    result = regard("evaluate", tiny_run.folder, reverse_files.test, "--beam", 1)
    assert result.lines[0].startswith("BLEU ")


def test_score_prints_the_log_probability_of_each_target(regard, tiny_run, tmp_path):
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("a b c\tc b a\ne d\td e\n", encoding="utf-8")
    result = regard("score", tiny_run.folder, pairs)
    rows = [json.loads(line) for line in regard("score", tiny_run.folder, pairs, "--json").lines]
    assert result.lines == [f"{row['log_prob']:.4f}" for row in rows]
    assert [row["text"] for row in rows] == ["c b a", "d e"]
    for row in rows:
        assert row["log_prob"] == pytest.approx(sum(row["token_log_probs"]))


def test_score_of_a_prediction_equals_its_log_probability(regard, tiny_run, tmp_path):
    output = regard("predict", tiny_run.folder, "--json", stdin="a b c d\n")
    (best,) = json.loads(output.out)["predictions"]
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text(f"a b c d\t{best['text']}\n", encoding="utf-8")
    result = regard("score", tiny_run.folder, pairs)
    assert float(result.out) == pytest.approx(best["log_prob"], abs=1e-3)


def test_test_set_of_the_run_is_the_default(regard, tiny_run, reverse_files):
    expected = regard("evaluate", tiny_run.folder, reverse_files.test)
    result = regard("evaluate", tiny_run.folder)
    assert (result.code, result.out) == (0, expected.out)
    scores = regard("score", tiny_run.folder)
    assert scores.out == regard("score", tiny_run.folder, reverse_files.test).out


def test_run_without_a_test_set_is_refused(refused, tiny_run, tmp_path):
    folder = shutil.copytree(tiny_run.folder, tmp_path / "run")
    (folder / "test.jsonl").unlink()
    for command in ("evaluate", "score"):
        message = refused(command, folder)
        assert message.startswith(f"{folder} holds no test set: test.jsonl")


def test_columns_without_a_file_are_refused(refused, tiny_run):
    for option, value in (("--columns", "source,target"), ("--on-error", "skip")):
        assert f"`{option}` is for a file" in refused("evaluate", tiny_run.folder, option, value)


def test_overrides_change_the_search(regard, tiny_run, reverse_files):
    arguments = ("evaluate", tiny_run.folder, reverse_files.test)
    greedy = regard(*arguments, "search.beams=1")
    assert greedy.out == regard(*arguments, "--beam", 1).out
    assert greedy.out == regard("evaluate", "search.beams=1", *arguments[1:]).out
    short = regard(*arguments, "search.max_ratio=0", "search.max_extra=1")
    assert short.out != greedy.out


def test_unknown_override_is_refused(refused, tiny_run):
    assert "'search.beams'" in refused("evaluate", tiny_run.folder, "serch.beams=1")
    assert "'beams'" in refused("evaluate", tiny_run.folder, "search.beems=1")


def test_result_is_written_to_a_file(regard, tiny_run, tmp_path):
    out = tmp_path / "result.json"
    assert regard("evaluate", tiny_run.folder, "--json", "-o", out).lines == [str(out)]
    assert json.loads(out.read_text(encoding="utf-8"))["num_examples"] == 30


@pytest.mark.parametrize("command", ["evaluate", "score"])
def test_the_test_set_of_the_run_is_announced(regard, tiny_run, command):
    result = regard(command, tiny_run.folder)
    num = len(tiny_run.evaluation.outputs)
    assert f"Test set of the run: {num} examples." in result.err.splitlines()


def test_wrong_value_of_on_error_names_the_option(refused, tiny_run, reverse_files):
    for command in (("evaluate", tiny_run.folder), ("train",)):
        message = refused(*command, reverse_files.test, "--on-error", "skipp")
        assert message.startswith("`--on-error` must be one of 'stop', 'skip', but is 'skipp'.")
