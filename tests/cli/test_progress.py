import gzip
import random
import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest

from regard.core import progress
from regard.core.files import read_json_lines
from regard.runs.prediction.predict import PredictionPipeline, PredictOptions
from regard.runs.train import train
from regard.tasks.prediction import Prediction


@pytest.fixture
def shown(monkeypatch):
    """Lines of the progress, as on a terminal; also those of fast operations."""
    lines = []
    screen = SimpleNamespace(
        width=79, update=lines.append, write=lines.append, clear=lambda: lines.append("")
    )
    for module in ("regard.core.progress", "regard.training.loggers.display"):
        monkeypatch.setattr(f"{module}.find_screen", lambda: screen)
        monkeypatch.setattr(f"{module}.REFRESH_SECONDS", 0.0)
    monkeypatch.setattr(progress, "DELAY_SECONDS", 0.0)
    return lines


@pytest.fixture
def fast(tiny_settings):
    return (*tiny_settings, "train.max_steps=2", "train.validate_every=1")


def operations(lines):
    """Return the operations in order, each once."""
    return [*dict.fromkeys(line.partition(" ")[0] for line in lines if line)]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["evaluate", "{run}", "{test}"], ["Reading", "Tokenising", "Predicting", "Computing"]),
        (["score", "{run}", "{test}"], ["Reading", "Tokenising", "Scoring"]),
        (["embed", "{run}", "{source}", "--out", "{out}"], ["Tokenising", "Encoding"]),
        (["predict", "{run}", "{source}"], ["Tokenising", "Predicting"]),
        # A single line is tokenised at once.
        (["predict", "{run}"], ["Predicting"]),
    ],
)
def test_commands_show_their_progress(
    regard, shown, tiny_run, reverse_files, tmp_path, arguments, expected
):
    source = tmp_path / "source.txt"
    source.write_text("a b c\nb c d e\n", encoding="utf-8")
    names = {"run": tiny_run.folder, "test": reverse_files.test, "source": source}
    names["out"] = tmp_path / "vectors.npy"
    result = regard(*(word.format(**names) for word in arguments), stdin="a b\n")
    assert result.code == 0
    assert operations(shown)[: len(expected)] == expected
    assert shown[-1] == "" and not any(line and line in result.out for line in shown)


def test_groups_of_sources_are_numbered_in_a_terminal(shown, tiny_run, monkeypatch):
    monkeypatch.setattr("regard.runs.prediction.predict.NUM_SOURCES", 2)
    pipeline = PredictionPipeline(tiny_run.predictor, PredictOptions())
    assert len(list(pipeline(["a b", "b c", "c d"]))) == 3
    for label in ("1–2", "3–3"):
        assert any(line.startswith(f"Predicting {label} ━") for line in shown)


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_number_of_lines_of_a_file_is_estimated(
    regard, shown, tiny_run, tmp_path, monkeypatch, suffix
):
    # Incompressible lines, as many as several buffers hold.
    num, path = 30_000, tmp_path / f"lines.txt{suffix}"
    words = random.Random(0).choices([f"{number:x}" for number in range(1 << 16)], k=num)
    with (gzip.open if suffix else open)(path, "wt") as file:
        file.writelines(f"{word:<9}\n" for word in words)
    monkeypatch.setattr(
        type(tiny_run.predictor),
        "predict",
        lambda self, sources, **_: [[Prediction(source, 0.0, (), ())] for source in sources],
    )
    result = regard("predict", tiny_run.folder, path, "--out", tmp_path / "out.txt")
    assert result.code == 0
    totals = [int(line.partition("/~")[2].split()[0].replace(",", "")) for line in shown if line]
    # A buffer of 64 KB is read in advance.
    assert totals[-1] == num and all(num / 3 < total <= 1.1 * num for total in totals)
    assert "lines/s" in shown[0] and shown[-1] == ""
    assert regard("predict", tiny_run.folder, path, "-q").code == 0


def test_pipe_of_many_lines_has_no_total(regard, shown, tiny_run, monkeypatch):
    monkeypatch.setattr("regard.runs.prediction.predict.NUM_SOURCES", 2)
    assert len(regard("predict", tiny_run.folder, stdin="a b\nb c\nc d\n").lines) == 3
    assert any(line.startswith("Predicting 3  ") and "lines/s" in line for line in shown)
    assert not any("~" in line for line in shown)


def test_training_shows_a_bar_and_its_events(regard, shown, pairs, tmp_path, fast):
    result = regard("train", pairs, "--out", tmp_path / "run", *fast, "train.log_every=1")
    assert any(line.startswith("epoch 1") and "/2  loss" in line for line in shown)
    assert any(line.startswith("Validation at step ") for line in shown)
    (end,) = [line for line in shown if line.startswith("Stopped after 2 steps (")]
    assert ": the limit of train.max_steps. Best validation " in end
    assert "Trained" not in result.err and "epoch" not in result.out
    assert "Fitting the tokenizer to 54 texts …" in shown


def test_training_in_a_file_is_plain_lines(regard, pairs, tmp_path, fast):
    result = regard("train", pairs, "--out", tmp_path / "run", *fast, "train.log_every=1")
    rows = read_json_lines(tmp_path / "run" / "journal.jsonl")
    assert [row["kind"] for row in rows].count("train") == 2
    assert result.err.count("\nepoch ") == 1 and "\x1b" not in result.err
    assert {"nll", "gradient_norm", "tokens_per_second"} <= rows[0].keys()


def test_verbose_training_logs_details(regard, pairs, tmp_path, fast):
    arguments = ("train", pairs, "--out", tmp_path / "run", *fast, "train.log_every=1")
    assert "gradient norm" in regard("--verbose", *arguments).err
    assert "gradient norm" not in regard(*arguments, "--force").err


def test_training_in_a_notebook_updates_one_output(reverse_files, tmp_path, monkeypatch):
    pages = []

    def display(page, display_id):
        pages.append(page)
        return SimpleNamespace(update=pages.append)

    shell = SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    fake = SimpleNamespace(HTML=lambda text: text, display=display)
    monkeypatch.setitem(sys.modules, "IPython.display", fake)
    request = reverse_files.request(tmp_path / "run")
    train(replace(request, settings=(*request.settings, "train.max_steps=2")))
    training = [page for page in pages if "epoch" in page]
    assert "/2" in training[0] and "Validation at step 2" in training[-1]
    assert any("Stopped after 2 steps" in page for page in pages)
