import json
import re
import shlex
import sys

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator


@pytest.fixture
def fast(tiny_settings):
    return (*tiny_settings, "train.max_steps=2", "train.validate_every=1")


def config(folder):
    return json.loads((folder / "config.json").read_text(encoding="utf-8"))


def read_tags(folder):
    """Names of the scalars in the event files of a folder."""
    events = EventAccumulator(str(folder))
    events.Reload()
    return events.Tags()["scalars"]


def note(folder):
    return config(folder)["about"]["data_note"]


def test_training_on_a_file_of_pairs_writes_a_run_folder(regard, pairs, tmp_path, fast):
    result = regard("train", pairs, "--out", tmp_path / "run", *fast)
    assert result.code == 0
    assert result.lines[0].startswith("PER ")
    assert result.lines[-1] == f"Run folder: {tmp_path / 'run'}"
    assert "Recipe: bahdanau2015-laptop (" in result.err
    assert note(tmp_path / "run").startswith("split by source side: 54 train, 3 valid, 3 test")


def test_run_folder_is_named_after_data_and_recipe(regard, pairs, tmp_path, monkeypatch, fast):
    monkeypatch.chdir(tmp_path)
    regard("train", pairs, "--recipe", "bahdanau2015-laptop", *fast)
    assert (tmp_path / "runs" / "pairs-bahdanau2015-laptop" / "metrics.json").exists()


def test_two_line_aligned_files_are_pairs(regard, pairs, tmp_path, fast):
    sources, targets = zip(
        *(line.split("\t") for line in pairs.read_text(encoding="utf-8").splitlines()), strict=True
    )
    for name, lines in (("x.en", sources), ("x.de", targets)):
        (tmp_path / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    out = tmp_path / "run"
    assert regard("train", tmp_path / "x.en", tmp_path / "x.de", "--out", out, *fast).code == 0
    assert note(out).startswith("split by source side: 54 train")


def test_validation_and_test_data_may_be_two_files_each(regard, pairs, tmp_path, fast):
    options = []
    for side, word in (("valid", "d e"), ("test", "e d")):
        for number in (1, 2):
            path = tmp_path / f"{side}{number}"
            path.write_text(f"{word}\n", encoding="utf-8")
            options += [f"--{side}", path]
    assert regard("train", pairs, *options, "--out", tmp_path / "run", *fast).code == 0
    assert note(tmp_path / "run") == "validation and test data as given"


def test_overrides_change_settings(regard, pairs, tmp_path, fast):
    out = tmp_path / "run"
    regard("train", "train.label_smoothing=0.1", pairs, "--out", out, "seed=5", *fast)
    recipe = config(out)["recipe"]
    assert (recipe["seed"], recipe["train"]["label_smoothing"]) == (5, 0.1)


def test_windows_line_ends_and_byte_order_mark_are_stripped(regard, pairs, tmp_path, fast):
    text = pairs.read_text(encoding="utf-8").replace("\n", "\r\n")
    windows = tmp_path / "windows.tsv"
    windows.write_bytes(b"\xef\xbb\xbf" + text.encode())
    for path, out in ((pairs, "plain"), (windows, "windows")):
        regard("train", path, "--out", tmp_path / out, *fast)
    plain, other = (config(tmp_path / out)["about"] for out in ("plain", "windows"))
    assert plain["data_fingerprint"] == other["data_fingerprint"]


def test_folder_with_a_run_is_not_overwritten(refused, tiny_folder, pairs, fast):
    before = (tiny_folder / "config.json").read_bytes()
    message = refused("train", pairs, "--out", tiny_folder, *fast)
    assert re.search(r"already holds a run\. .*--resume.*--force.*--out", message)
    assert (tiny_folder / "config.json").read_bytes() == before


def test_force_replaces_the_run_in_a_folder(regard, tiny_folder, pairs, fast):
    assert regard("train", pairs, "--out", tiny_folder, "--force", *fast).code == 0
    assert note(tiny_folder).startswith("split by source side")


def test_interrupted_training_prints_the_command_to_resume(
    regard, reverse_files, tmp_path, monkeypatch, fast, interrupted_at
):
    monkeypatch.setattr("regard.runs.train.choose_display", lambda: interrupted_at(1))
    out = tmp_path / "my run"
    held_out = ("--valid", reverse_files.valid, "--test", reverse_files.test)
    result = regard("train", reverse_files.train, *held_out, "--out", out, *fast, "--tensorboard")
    assert result.code == 130
    (line,) = re.findall(r"Stopped; nothing is lost\. Resume with: (.+)", result.err)
    name, *arguments = shlex.split(line)
    assert (name, arguments[-1]) == ("regard", "--tensorboard")
    again = regard(*arguments)
    assert again.code == 0, again.err
    assert json.loads((out / "metrics.json").read_text())["training"]["steps"] == 2


@pytest.mark.parametrize("option", ["--valid", "--test"])
def test_three_files_for_one_side_are_refused(refused, pairs, option):
    message = refused("train", pairs, option, "a", option, "b", option, "c")
    assert message.startswith(f"`{option}` must be one file of pairs or two line-aligned files")


def test_metric_option_comes_first_and_selects_the_checkpoint(regard, pairs, tmp_path, fast):
    out = tmp_path / "run"
    result = regard("train", pairs, "--metric", "rouge", "--out", out, *fast)
    assert result.lines[0].startswith("ROUGE-L ")
    recipe = config(out)["recipe"]
    assert recipe["metrics"][0] == recipe["validation"]["metric"] == "rouge"
    rows = [json.loads(line) for line in (out / "journal.jsonl").read_text().splitlines()]
    assert all("rouge" in row for row in rows if row["kind"] == "valid")


def test_perplexity_can_select_the_checkpoint(regard, pairs, tmp_path, fast):
    out = tmp_path / "run"
    result = regard("train", pairs, "--metric", "perplexity", "--out", out, *fast)
    assert result.lines[0].startswith("perplexity ")
    assert config(out)["recipe"]["validation"]["metric"] == "perplexity"
    rows = [json.loads(line) for line in (out / "journal.jsonl").read_text().splitlines()]
    assert all(row["value"] == -row["perplexity"] for row in rows if row["kind"] == "valid")


def test_accuracy_at_k_is_evaluated(regard, pairs, tmp_path, fast):
    result = regard("train", pairs, "--metric", "accuracy@3", "--out", tmp_path / "run", *fast)
    assert result.lines[0].startswith("accuracy@3 ")
    assert config(tmp_path / "run")["recipe"]["validation"]["metric"] == "accuracy"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("rogue", "but is 'rogue'. Did you mean 'rouge'?"),
        ("accuracy@1", "`--metric` must be between 2 and 100, but is 1."),
    ],
)
def test_unknown_metric_is_refused(refused, pairs, tmp_path, name, message):
    error = refused("train", pairs, "--metric", name, "--out", tmp_path / "run")
    assert error.startswith("`--metric` must be ")
    assert error.endswith(message)
    assert not (tmp_path / "run").exists()


def test_metric_is_refused_for_classifiers(refused, pairs, tmp_path):
    arguments = ("--recipe", "sst2-cnn", "--metric", "bleu", "--out", tmp_path / "run")
    message = refused("train", pairs, *arguments)
    assert message.startswith("`--metric` is for models that generate text, but the recipe is")


@pytest.fixture
def wide(tmp_path):
    """Sixty lines with two sources, a column to skip, a target and a reference."""
    path = tmp_path / "wide.tsv"
    lines = [f"a{n} b\tc{n}\tx\td{n} e\tf{n} g\n" for n in range(60)]
    path.write_text("".join(lines), encoding="utf-8")
    return path


COLUMNS = "source,source,-,target,target"
RECIPE = "bahdanau2015-laptop"


def test_further_columns_are_sources_and_references(regard, wide, tmp_path, fast):
    out = tmp_path / "run"
    arguments = ("--columns", COLUMNS, "--recipe", RECIPE, "--out", out, *fast)
    assert regard("train", wide, *arguments).code == 0
    rows = [json.loads(line) for line in (out / "test.jsonl").read_text().splitlines()]
    assert all(len(row["source"]) == len(row["target"]) == 2 for row in rows)
    assert regard("evaluate", out, wide).code == 0
    assert regard("evaluate", out, out / "test.jsonl").code == 0
    assert len(regard("predict", out, stdin="a1 b\tc2\na2 b\tc3\n").lines) == 2
    assert len(regard("score", out, wide).lines) == 60
    shown = regard("show", out, "a1 b\tc2").lines
    # Each source and the target has its own end token.
    assert shown[-1].startswith("Probabilities: ")
    assert sum("<eos>" in line for line in shown[:-1]) == 3


def test_titles_choose_columns_in_later_files_as_well(regard, tmp_path, fast):
    rows = [(f"a{n} b", f"x{n} y", f"d{n} e") for n in range(60)]
    train, later = tmp_path / "train.tsv", tmp_path / "later.csv"
    train.write_text("id\tgerman\tfrench\tenglish\n", encoding="utf-8")
    with train.open("a", encoding="utf-8") as file:
        file.writelines("\t".join((str(n), *row)) + "\n" for n, row in enumerate(rows))
    later.write_text("english,german\nd1 e,a1 b\nd2 e,a2 b\n", encoding="utf-8")
    out = tmp_path / "run"
    arguments = ("--columns", "english,german", "--recipe", RECIPE, "--out", out, *fast)
    result = regard("train", train, *arguments)
    roles = "column 4 'english' is the source, column 2 'german' the target"
    assert roles in " ".join(result.err.split())
    first = json.loads((out / "test.jsonl").read_text().splitlines()[0])
    assert (first["source"][0], first["target"][0]) == ("d", "a")
    predicted = [json.loads(line) for line in regard("predict", out, later, "--json").lines]
    assert [row["source"] for row in predicted] == ["d1 e", "d2 e"]
    for data in (later, out / "test.jsonl"):
        assert regard("evaluate", out, data).code == 0


def test_bad_lines_are_refused_or_skipped(regard, refused, pairs, tmp_path, fast):
    pairs.write_text("no tab\n" + pairs.read_text() + "none\n", encoding="utf-8")
    message = refused("train", pairs, "--out", tmp_path / "run", *fast)
    assert "line 1, has no tab" in message
    assert "2 of 62 lines cannot be read" in message
    arguments = ("--on-error", "skip", "--out", tmp_path / "run", *fast)
    result = regard("train", pairs, *arguments)
    assert result.code == 0
    assert "skipped 2 lines of 62" in " ".join(result.err.split())
    assert "--on-error" not in regard("evaluate", tmp_path / "run", pairs).err
    message = refused("evaluate", tmp_path / "run", pairs, "--on-error", "stop")
    assert "2 of 62 lines cannot be read" in message
    message = refused("evaluate", tmp_path / "run", pairs, "--on-error", "skp")
    assert "Did you mean 'skip'?" in message


def test_line_with_too_few_sources_is_refused(regard, refused, wide, tmp_path, fast):
    arguments = ("--columns", COLUMNS, "--recipe", RECIPE, "--out", tmp_path / "run", *fast)
    regard("train", wide, *arguments)
    message = refused("predict", tmp_path / "run", stdin="a1 b\n")
    assert message.startswith("A line must have 2 columns, its sources, or all of")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("source,targte", "but one is 'targte'. Did you mean 'target'?"),
        ("source,source", "must have at least one 'source' and one 'target', but are"),
        (f"{COLUMNS},target", "line 1, has 5 columns, but `columns` name 6"),
    ],
)
def test_wrong_columns_are_refused(refused, wide, tmp_path, columns, message):
    assert message in refused("train", wide, "--columns", columns, "--out", tmp_path / "run")


def test_unknown_target_symbol_is_reported_in_one_line(regard, pairs, tmp_path, fast):
    regard("train", pairs, "--out", tmp_path / "run", *fast)
    path = tmp_path / "strange.tsv"
    path.write_text("a b\tʘ a\n", encoding="utf-8")
    for command in ("evaluate", "score"):
        result = regard(command, tmp_path / "run", path)
        assert result.code == 0
        assert "1 of 1 targets contain tokens that are not in the vocabulary (first: 'ʘ'" in (
            result.err
        )


def test_tensorboard_option_writes_events_of_this_run_only(regard, pairs, tmp_path, fast):
    out = tmp_path / "run"
    settings = (*fast, "train.log_every=1")
    assert regard("train", pairs, "--out", out, *settings, "--tensorboard").code == 0
    assert "train/loss" in read_tags(out / "tensorboard")
    # A new run in the folder has no events of the earlier one.
    assert regard("train", pairs, "--out", out, "--force", *settings).code == 0
    assert not (out / "tensorboard").exists()


def test_missing_tensorboard_is_reported_before_training(
    refused, pairs, tmp_path, fast, monkeypatch
):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    message = refused("train", pairs, "--out", tmp_path / "run", *fast, "--tensorboard")
    assert "regard[board]" in message
    assert not (tmp_path / "run").exists()
