import json
import os
import subprocess
import sys

import pytest

from regard.runs.reranking import rerank
from regard.search.settings import SearchConfig

SOURCES = ["a b c", "", "e d", "b a c d"]


@pytest.fixture
def sources(tmp_path):
    path = tmp_path / "sources.txt"
    path.write_text("\n".join(SOURCES) + "\n", encoding="utf-8")
    return path


def test_one_prediction_per_line(regard, tiny_run, sources):
    result = regard("predict", tiny_run.folder, sources)
    assert result.lines == tiny_run.predictor.translate(SOURCES)
    assert result.lines[1] == ""


@pytest.mark.parametrize(
    ("name", "line", "header"),
    [
        ("pairs.tsv", "{0}\tx y", ""),
        ("pairs.csv", '"{0}";x', "english;german\n"),
        ("pairs.jsonl", '{{"translation": {{"en": "{0}", "de": "x"}}}}', ""),
    ],
)
def test_the_sources_of_pairs_are_predicted(regard, tiny_run, tmp_path, name, line, header):
    sources = ["a b c", "e d", "b a c d"]
    lines = "".join(line.format(source) + "\n" for source in sources)
    (tmp_path / name).write_text(header + lines, encoding="utf-8")
    result = regard("predict", tiny_run.folder, tmp_path / name)
    assert result.lines == tiny_run.predictor.translate(sources)
    assert "is the source" in result.err


def test_standard_input_is_read_when_no_file_is_given(regard, tiny_run, sources):
    from_file = regard("predict", tiny_run.folder, sources)
    text = sources.read_text(encoding="utf-8")
    assert regard("predict", tiny_run.folder, stdin=text).out == from_file.out
    assert regard("predict", tiny_run.folder, "-", stdin=text).out == from_file.out


def test_empty_input_gives_empty_output(regard, tiny_run):
    result = regard("predict", tiny_run.folder, stdin="")
    assert (result.code, result.out) == (0, "")


def test_group_size_does_not_change_the_output(regard, tiny_run, sources, monkeypatch):
    expected_result = regard("predict", tiny_run.folder, sources)
    monkeypatch.setattr("regard.runs.prediction.predict.NUM_SOURCES", 2)
    assert regard("predict", tiny_run.folder, sources).out == expected_result.out


def test_several_predictions_have_line_number_log_probability_and_text(regard, tiny_run, sources):
    result = regard("predict", tiny_run.folder, sources, "--nbest", 3)
    rows = [line.split("\t") for line in result.lines]
    assert [row[0] for row in rows] == ["1", "1", "1", "2", "3", "3", "3", "4", "4", "4"]
    best = tiny_run.predictor.predict(["a b c"], num_best=3)[0]
    assert rows[:3] == [["1", f"{one.log_prob:.4f}", one.text] for one in best]


def test_nbest_raises_the_number_of_beams(regard, tiny_run):
    result = regard("predict", tiny_run.folder, "--nbest", 6, stdin="a b c\n")
    assert len(result.lines) == 6


def test_json_holds_everything(regard, tiny_run, sources):
    result = regard("predict", tiny_run.folder, sources, "--json", "--nbest", 2)
    rows = [json.loads(line) for line in result.lines]
    assert [row["source"] for row in rows] == SOURCES
    best, second = rows[0]["predictions"]
    assert set(best) == {"text", "log_prob", "tokens", "token_log_probs"}
    assert best["text"] != second["text"]


def test_beam_of_one_is_greedy_search(regard, tiny_run, sources):
    greedy = regard("predict", tiny_run.folder, sources, "--beam", 1)
    assert greedy.code == 0
    assert len(greedy.lines) == len(SOURCES)


def test_overrides_change_the_search(regard, tiny_run, sources):
    arguments = ("search.temperature=1.5", "search.top_k=3", "search.seed=4")
    expected = tiny_run.predictor.translate(
        SOURCES, search=SearchConfig(temperature=1.5, top_k=3, seed=4)
    )
    assert expected != tiny_run.predictor.translate(SOURCES)
    assert regard("predict", tiny_run.folder, sources, *arguments).lines == expected
    assert regard("predict", tiny_run.folder, *arguments, sources).lines == expected
    text = sources.read_text(encoding="utf-8")
    assert regard("predict", tiny_run.folder, *arguments, stdin=text).lines == expected


def test_samples_of_a_line_do_not_depend_on_other_lines(regard, tiny_run, sources, monkeypatch):
    arguments = ("search.temperature=2", "--nbest", 6)
    expected_result = regard("predict", tiny_run.folder, sources, *arguments)
    monkeypatch.setattr("regard.runs.prediction.predict.NUM_SOURCES", 1)
    assert regard("predict", tiny_run.folder, sources, *arguments).out == expected_result.out
    first = [line for line in expected_result.lines if line.startswith("1\t")]
    assert regard("predict", tiny_run.folder, *arguments, stdin=SOURCES[0]).lines == first
    assert len(set(first)) > 1


def test_every_prediction_starts_with_the_prefix(regard, tiny_run, sources):
    free = regard("predict", tiny_run.folder, sources)
    result = regard("predict", tiny_run.folder, sources, "--prefix", "e e")
    assert not any(line.startswith("e e") for line in free.lines)
    # An empty line still gives an empty line.
    assert [line.startswith("e e") for line in result.lines] == [True, False, True, True]


def test_only_the_search_can_be_changed(refused, tiny_run, sources):
    line = refused("predict", tiny_run.folder, sources, "train.seed=3")
    assert line.startswith("`train.seed` cannot be changed once a model is trained.")
    assert "'search.temperature'" in line


def test_search_settings_out_of_range_are_refused(refused, tiny_run, sources):
    for value, rule in (("nan", "be finite"), ("1.5", "be between 0.0 and 1.0")):
        assert refused("predict", tiny_run.folder, sources, f"search.top_p={value}") == (
            f"`search.top_p` must {rule}, but is {value}."
        )


def test_prefix_of_unknown_tokens_is_refused(refused, tiny_run, sources):
    assert refused("predict", tiny_run.folder, sources, "--prefix", "a Ж") == (
        "`prefix` must consist of tokens of the target vocabulary, but 'a Ж' is tokenised as 'a ⁇'."
    )


def test_too_long_prefix_is_refused(refused, tiny_run, sources):
    arguments = ("search.max_ratio=0", "search.max_extra=2", "--prefix", "a b c")
    assert refused("predict", tiny_run.folder, sources, *arguments) == (
        "`prefix` must fit into the maximum target length (2 tokens), but has 3 tokens. "
        "Shorten it, or allow longer targets."
    )


def test_second_file_is_refused(refused, tiny_run, sources):
    line = refused("predict", tiny_run.folder, sources, "more.txt")
    assert line.startswith("At most 1 file can be given, but there are 2: ")


def test_setting_without_effect_gives_a_warning(regard, tiny_run, sources):
    result = regard("predict", tiny_run.folder, sources, "search.top_k=3")
    assert result.err.splitlines() == [
        "`search.top_k` is 3, but has no effect: `search.temperature` is 0.0."
    ]
    assert result.out == regard("predict", tiny_run.folder, sources).out


def test_prefix_is_refused_for_other_tasks(refused, sorting_run, sources, monkeypatch):
    monkeypatch.setattr("regard.runs.folder.load", lambda run, device: sorting_run)
    assert refused("predict", "runs/sorter", sources, "--prefix", "a") == (
        "`--prefix` is for models that generate text, but the task of this run is 'sorting'. "
        "Leave it out."
    )


def test_predictions_can_be_reranked_by_another_run(
    regard, tiny_run, tiny_run_without_attention, sources
):
    arguments = (
        "--rerank",
        tiny_run_without_attention.folder,
        "--rerank-weight",
        900,
        "--beam",
        12,
    )
    expected = rerank(
        tiny_run.predictor,
        tiny_run_without_attention.predictor,
        SOURCES,
        num_best=2,
        weight=900.0,
        search=SearchConfig(beams=12),
    )
    result = regard("predict", tiny_run.folder, sources, *arguments, "--nbest", 2)
    assert [line.split("\t")[2] for line in result.lines] == [
        one.text for best in expected for one in best
    ]
    assert regard("predict", tiny_run.folder, sources, *arguments).lines == [
        best[0].text for best in expected
    ]
    plain = regard("predict", tiny_run.folder, sources, "--beam", 12)
    assert plain.lines != [best[0].text for best in expected]


def test_beams_are_the_number_of_sampled_candidates_for_reranking(regard, tiny_run):
    arguments = ("--rerank", tiny_run.folder, "--rerank-weight", 9, "search.temperature=4")
    few, many = (
        regard("predict", tiny_run.folder, *arguments, "--beam", beam, stdin="a b c d e\n")
        for beam in (1, 400)
    )
    # The run is its own reverse model: among more candidates is a better one.
    assert (many.out, many.err) == ("e d c b a\n", "")
    assert few.out != many.out


def test_other_tasks_cannot_rerank(refused, tiny_run, sorting_run, sources, monkeypatch):
    runs = {str(tiny_run.folder): tiny_run.predictor, "runs/sorter": sorting_run}
    monkeypatch.setattr("regard.runs.folder.load", lambda run, device: runs[run])
    assert refused("predict", tiny_run.folder, sources, "--rerank", "runs/sorter") == (
        "The run that reranks must be a run for the task 'generation', an encoder–decoder, but is "
        "one for 'sorting'."
    )


def test_weight_without_a_reranker_gives_a_warning(regard, tiny_run, sources):
    result = regard("predict", tiny_run.folder, sources, "--rerank-weight", 2)
    assert result.err == "`--rerank-weight` is 2, but has no effect without `--rerank`.\n"
    assert result.out == regard("predict", tiny_run.folder, sources).out


def test_sentence_is_the_source(regard, tiny_run):
    expected = tiny_run.predictor.translate(["a b c"])
    assert regard("predict", tiny_run.folder, "a b c").lines == expected
    assert regard("predict", "search.beams=5", tiny_run.folder, "a b c").lines == expected


def test_word_is_the_source_and_reported(regard, tiny_run):
    result = regard("predict", tiny_run.folder, "a")
    assert result.lines == tiny_run.predictor.translate(["a"])
    assert "'a' is not a file" in result.err
    assert regard("predict", tiny_run.folder, "a", "-q").err == ""


def test_missing_file_is_refused(refused, tiny_run):
    assert refused("predict", tiny_run.folder, "none.txt") == "none.txt does not exist."


def test_seed_is_that_of_the_search(regard, tiny_run, sources):
    arguments = ("predict", tiny_run.folder, sources, "search.temperature=1.5")
    expected = regard(*arguments, "search.seed=4").lines
    assert regard(*arguments, "--seed", 4).lines == expected
    assert regard(*arguments, "--seed", 5).lines != expected


def test_predictions_are_written_to_a_file(regard, tiny_run, sources, tmp_path):
    out = tmp_path / "new" / "targets.txt"
    assert regard("predict", tiny_run.folder, sources, "-o", out).lines == [str(out)]
    written = out.read_text(encoding="utf-8")
    assert written == regard("predict", tiny_run.folder, sources).out


def test_existing_output_is_kept_after_an_error(refused, tiny_run, tmp_path):
    out = tmp_path / "targets.txt"
    out.write_text("old\n", encoding="utf-8")
    refused("predict", tiny_run.folder, "none.txt", "-o", out)
    assert out.read_text(encoding="utf-8") == "old\n"
    assert [path.name for path in tmp_path.iterdir()] == ["targets.txt"]


def test_folder_as_output_of_texts_is_refused(refused, tiny_run, sources, tmp_path):
    message = refused("predict", tiny_run.folder, sources, "-o", tmp_path)
    assert message == f"`--out` must be a file, but {tmp_path} is a folder."


def test_notice_at_a_terminal_that_standard_input_is_read(regard, tiny_run, monkeypatch):
    monkeypatch.setattr("regard.cli.model.predict.is_terminal", lambda: True)
    assert "Ctrl-D" in regard("predict", tiny_run.folder, stdin="").err
    assert regard("predict", tiny_run.folder, "a b").err == ""


def test_columns_of_a_sentence_are_refused(refused, tiny_run):
    message = refused("predict", tiny_run.folder, "a b", "--columns", "source,target")
    assert message == "`--columns` is for files, but 'a b' is a text. Leave it out."


@pytest.mark.parametrize("columns", ["-,source", "english", "-,source,target", "english,german"])
def test_columns_of_this_file_replace_those_of_the_run(regard, tiny_run, tmp_path, columns):
    path = tmp_path / "table.tsv"
    path.write_text("german\tenglish\ne e\ta b c\ne\td b\n", encoding="utf-8")
    result = regard("predict", tiny_run.folder, path, "--columns", columns)
    assert result.lines == tiny_run.predictor.translate(["a b c", "d b"])


def test_file_without_a_source_gives_a_warning(regard, tiny_run, tmp_path):
    (tmp_path / "empty.tsv").write_text("")
    result = regard("predict", tiny_run.folder, tmp_path / "empty.tsv")
    assert (result.code, result.out) == (0, "")
    assert "empty.tsv" in result.err


@pytest.fixture
def opened(tiny_run):
    """`regard predict` with a pipe as its standard input that stays open."""
    command = (sys.executable, "-m", "regard", "predict", str(tiny_run.folder), "--device", "cpu")
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        os.set_blocking(process.stdout.fileno(), True)
        yield process
        process.kill()


def test_each_line_of_an_open_pipe_is_answered(opened, tiny_run):
    for source in ("a b c", "e d", "b a c d"):
        opened.stdin.write(f"{source}\n".encode())
        opened.stdin.flush()
        (expected,) = tiny_run.predictor.translate([source])
        assert opened.stdout.readline().decode() == f"{expected}\n"
    opened.stdin.close()
    assert opened.wait(60) == 0


def test_error_in_an_open_pipe_ends_the_command(opened, tiny_run):
    opened.stdin.write(b"a b c\n\xff\n")
    opened.stdin.flush()
    (expected,) = tiny_run.predictor.translate(["a b c"])
    assert opened.stdout.readline().decode() == f"{expected}\n"
    # Not a crash of Python, which waits for the pipe in a thread.
    assert opened.wait(60) == 2
    assert "line 2, is not UTF-8" in opened.stderr.read().decode()


def test_closed_output_ends_the_command_silently(opened):
    opened.stdout.close()
    opened.stdin.write(b"a b c\n" * 3)
    opened.stdin.flush()
    assert opened.wait(60) == 0
    assert opened.stderr.read() == b""


def test_line_breaks_of_a_prediction_do_not_add_lines(regard, tiny_run, monkeypatch, sources):
    monkeypatch.setattr(type(tiny_run.predictor.target), "write", lambda self, ids: "a\nb")
    assert regard("predict", tiny_run.folder, sources).lines == ["a b", "", "a b", "a b"]
    assert regard("predict", tiny_run.folder, "a b c").lines == ["a", "b"]


def test_ctranslate2_predicts_the_same(regard, tiny_transformer_run, monkeypatch, tmp_path):
    pytest.importorskip("ctranslate2")
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path))
    run, text = tiny_transformer_run.folder, "a b c\n\nd e\n"
    for options in (("--beam", 1), ("--nbest", 2), ()):
        ours = regard("predict", run, *options, stdin=text)
        theirs = regard("predict", run, *options, "--engine", "ctranslate2", stdin=text)
        assert theirs.code == 0
        for mine, other in zip(ours.lines, theirs.lines, strict=True):
            assert mine.split("\t")[2:] == other.split("\t")[2:]
            if "--nbest" not in options:
                assert mine == other
    found = json.loads(regard("predict", run, "a b", "--json", "--engine", "ctranslate2").out)
    (prediction,) = found["predictions"]
    assert sum(prediction["token_log_probs"]) == pytest.approx(prediction["log_prob"])
    assert len(prediction["tokens"]) == len(prediction["token_log_probs"]) > 0


@pytest.mark.parametrize(
    "name", ["groups=5", "coverage_penalty=0.2", "stopping=bound", "consensus=4", "precision=int8"]
)
def test_engine_refuses_settings_of_search_that_it_lacks(
    refused, tiny_transformer_run, monkeypatch, tmp_path, name
):
    pytest.importorskip("ctranslate2")
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path))
    arguments = ("predict", tiny_transformer_run.folder, "a b", "--engine", "ctranslate2")
    message = refused(*arguments, "--beam", 5, f"search.{name}")
    assert message.startswith(f"`--engine ctranslate2` needs `search.{name.partition('=')[0]}` ")


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (("--engine", "ctranslat2"), "Did you mean 'ctranslate2'?"),
        (("--engine", "ctranslate2"), "`model.encoder.kind` must be 'transformer', but is 'rnn'"),
        (("--engine", "ctranslate2", "--rerank", "RUN"), "has no `--rerank`"),
        (("--engine", "ctranslate2", "--prefix", "a"), "has no `--prefix`"),
        (("--engine", "ctranslate2", "--keep", "url"), "has no `--keep`"),
        (("--engine", "ctranslate2", "--forbid", "a"), "has no `--forbid`"),
        (("--engine", "ctranslate2", "--replace-unknown"), "has no `--replace-unknown`"),
        (("--engine", "ctranslate2", "--json", "--alternatives", 2), "has no `--alternatives`"),
        (("--engine", "ctranslate2", "--tree", "tree.json"), "has no `--tree`"),
    ],
)
def test_engine_refuses_what_it_lacks(refused, tiny_run, options, part):
    pytest.importorskip("ctranslate2")
    given = [tiny_run.folder if option == "RUN" else option for option in options]
    assert part in refused("predict", tiny_run.folder, "a b", *given)
