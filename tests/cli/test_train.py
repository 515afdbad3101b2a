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
    monkeypatch.setattr("regard.training.loop.find_display", lambda: interrupted_at(1))
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
