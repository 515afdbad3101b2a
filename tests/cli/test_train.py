import json
import re
import shlex

import pytest


@pytest.fixture
def fast(tiny_settings):
    return (*tiny_settings, "train.max_steps=2", "train.validate_every=1")


def config(folder):
    return json.loads((folder / "config.json").read_text(encoding="utf-8"))


def note(folder):
    return config(folder)["about"]["data_note"]


def test_file_of_pairs_becomes_a_run_folder(regard, pairs, tmp_path, fast):
    answer = regard("train", pairs, "--out", tmp_path / "run", *fast)
    assert answer.code == 0
    assert answer.lines[0].startswith("PER ")
    assert answer.lines[-1] == f"Run folder: {tmp_path / 'run'}"
    assert "Recipe: bahdanau2015-laptop, because" in answer.err
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


def test_words_change_settings(regard, pairs, tmp_path, fast):
    out = tmp_path / "run"
    regard("train", "train.label_smoothing=0.1", pairs, "--out", out, "seed=5", *fast)
    recipe = config(out)["recipe"]
    assert (recipe["seed"], recipe["train"]["label_smoothing"]) == (5, 0.1)


def test_windows_line_ends_and_byte_order_mark_are_no_part_of_the_text(
    regard, pairs, tmp_path, fast
):
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


def test_folder_with_a_run_is_replaced_by_force(regard, tiny_folder, pairs, fast):
    assert regard("train", pairs, "--out", tiny_folder, "--force", *fast).code == 0
    assert note(tiny_folder).startswith("split by source side")


def test_interrupted_training_names_the_command_that_goes_on(
    regard, reverse_files, tmp_path, monkeypatch, fast, interrupted_at
):
    monkeypatch.setattr("regard.training.loop.choose_display", lambda: interrupted_at(1))
    out = tmp_path / "my run"
    held_out = ("--valid", reverse_files.valid, "--test", reverse_files.test)
    answer = regard("train", reverse_files.train, *held_out, "--out", out, *fast)
    assert answer.code == 130
    (line,) = re.findall(r"Stopped; nothing is lost\. Go on with: (.+)", answer.err)
    name, *words = shlex.split(line)
    assert name == "regard"
    again = regard(*words)
    assert again.code == 0, again.err
    assert json.loads((out / "metrics.json").read_text())["training"]["steps"] == 2


@pytest.mark.parametrize("option", ["--valid", "--test"])
def test_three_files_for_one_side_are_refused(refused, pairs, option):
    message = refused("train", pairs, option, "a", option, "b", option, "c")
    assert message.startswith(f"`{option}` must be one file of pairs or two line-aligned files")


def test_metric_by_name_comes_first_and_judges(regard, pairs, tmp_path, fast):
    out = tmp_path / "run"
    answer = regard("train", pairs, "--metric", "rouge", "--out", out, *fast)
    assert answer.lines[0].startswith("ROUGE-L ")
    recipe = config(out)["recipe"]
    assert recipe["metrics"][0] == recipe["validation"]["metric"] == "rouge"
    rows = [json.loads(line) for line in (out / "journal.jsonl").read_text().splitlines()]
    assert all("rouge" in row for row in rows if row["kind"] == "valid")


def test_perplexity_can_judge(regard, pairs, tmp_path, fast):
    out = tmp_path / "run"
    answer = regard("train", pairs, "--metric", "perplexity", "--out", out, *fast)
    assert answer.lines[0].startswith("perplexity ")
    assert config(out)["recipe"]["validation"]["metric"] == "perplexity"
    rows = [json.loads(line) for line in (out / "journal.jsonl").read_text().splitlines()]
    assert all(row["value"] == -row["perplexity"] for row in rows if row["kind"] == "valid")


def test_candidates_are_measured_too(regard, pairs, tmp_path, fast):
    answer = regard("train", pairs, "--metric", "accuracy@3", "--out", tmp_path / "run", *fast)
    assert answer.lines[0].startswith("accuracy@3 ")
    assert config(tmp_path / "run")["recipe"]["validation"]["metric"] == "accuracy"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("rogue", "but is 'rogue'. Did you mean 'rouge'?"),
        ("accuracy@1", "`--metric` must be between 2 and 100, but is 1."),
    ],
)
def test_unknown_metric_is_refused(refused, pairs, tmp_path, name, message):
    found = refused("train", pairs, "--metric", name, "--out", tmp_path / "run")
    assert found.startswith("`--metric` must be ")
    assert found.endswith(message)
    assert not (tmp_path / "run").exists()


def test_metric_is_for_models_that_write(refused, pairs, tmp_path):
    words = ("--recipe", "sst2-cnn", "--metric", "bleu", "--out", tmp_path / "run")
    message = refused("train", pairs, *words)
    assert message.startswith("`--metric` is for models that write their answer, but the recipe is")


@pytest.fixture
def wide(tmp_path):
    """Sixty lines with two sources, a column to skip, a target and a reference."""
    path = tmp_path / "wide.tsv"
    lines = [f"a{n} b\tc{n}\tx\td{n} e\tf{n} g\n" for n in range(60)]
    path.write_text("".join(lines), encoding="utf-8")
    return path


COLUMNS = "source,source,-,target,target"


def test_further_columns_are_context_and_references(regard, wide, tmp_path, fast):
    out = tmp_path / "run"
    words = ("--columns", COLUMNS, "--out", out, *fast)
    assert regard("train", wide, *words).code == 0
    rows = [json.loads(line) for line in (out / "test.jsonl").read_text().splitlines()]
    assert all(len(row["source"]) == len(row["target"]) == 2 for row in rows)
    assert regard("evaluate", out, wide).code == 0
    assert regard("evaluate", out, out / "test.jsonl").code == 0
    assert len(regard("predict", out, stdin="a1 b\tc2\na2 b\tc3\n").lines) == 2
    assert len(regard("score", out, wide).lines) == 60
    shown = regard("show", out, "a1 b\tc2").lines
    # Each source has its own end, and so has the target.
    assert sum("<eos>" in line for line in shown) == 3


def test_line_without_its_context_is_refused(regard, refused, wide, tmp_path, fast):
    regard("train", wide, "--columns", COLUMNS, "--out", tmp_path / "run", *fast)
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


def test_unseen_phone_is_told_in_one_line(regard, pairs, tmp_path, fast):
    regard("train", pairs, "--out", tmp_path / "run", *fast)
    path = tmp_path / "strange.tsv"
    path.write_text("a b\tʘ a\n", encoding="utf-8")
    for verb in ("evaluate", "score"):
        answer = regard(verb, tmp_path / "run", path)
        assert answer.code == 0
        assert "1 of 1 targets hold something that the vocabulary has never seen (first: 'ʘ'" in (
            answer.err
        )
