"""Invalid input: a one-line message, exit code 2, and no files written."""

import gzip
import shutil

import pytest

PAIRS = "".join(f"source {number}\ttarget {number}\n" for number in range(40))
LONG_LINE = b"a " * 600_000


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty."),
        (b"\n\n", "holds no pair in which both sides have text."),
        (PAIRS.encode() + b"no tab here\n", "line 41, has no tab. A line holds the source, a tab"),
        (PAIRS.encode() + "ä\tö\n".encode("latin1"), "line 41, is not UTF-8 (byte 0xe4 at"),
        (PAIRS.encode() + b"a\0b\tc\n", "line 41, holds a NUL byte, so this is not UTF-8 text."),
        (PAIRS.encode("utf-16"), "line 1, holds a NUL byte"),
        (LONG_LINE + b"\tb\n", "line 1, has 1,200,003 bytes, but a line may have 1,000,000."),
        (b"a\tb\n", "A split needs at least 10 distinct sources, but there are 1."),
    ],
)
def test_invalid_file_is_refused(refused, tmp_path, content, message):
    path = tmp_path / "pairs.tsv"
    path.write_bytes(content)
    assert message in refused("train", path, "--out", tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_files_of_unequal_length_are_refused(refused, tmp_path):
    for name, num in (("x.en", 12), ("x.de", 11)):
        (tmp_path / name).write_text("word\n" * num, encoding="utf-8")
    message = refused("train", tmp_path / "x.en", tmp_path / "x.de", "--out", tmp_path / "run")
    assert message.endswith("x.de has 11. Pair files must have equal length.")
    assert "x.en has 12 lines but" in message
    assert not (tmp_path / "run").exists()


def test_damaged_archive_is_refused(refused, tmp_path):
    path = tmp_path / "pairs.tsv.gz"
    path.write_bytes(gzip.compress(PAIRS.encode())[:-20])
    assert "is a damaged gzip file" in refused("train", path, "--out", tmp_path / "run")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--recipe", "bahdanu2015"), "but is 'bahdanu2015'. Nearest: 'bahdanau2015', "),
        (("--recipe", "absent.toml"), "absent.toml does not exist."),
        (("train.max_stpes=3",), "`train.max_stpes` is not a setting. Did you mean 'max_steps'?"),
        (("train.max_steps=many",), "`train.max_steps` must be int, but is 'many' (str)."),
        (("model.decoder.kind=bahdanu",), "Did you mean 'bahdanau'?"),
        (("--device", "nonsense"), "`device` must be one of 'auto', 'cpu'"),
        (("--resume",), "holds no run to resume. Leave out --resume."),
        (("--valid", "absent.tsv"), "'absent.tsv' does not exist."),
        (("one", "more"), "At most 2 files can be given, but there are 3"),
    ],
)
def test_invalid_argument_of_train_is_refused(refused, pairs, tmp_path, arguments, message):
    assert message in refused("train", pairs, *arguments, "--out", tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_error_for_an_unknown_data_set_suggests_a_name(refused, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    message = refused("train", "phrasebok")
    assert message.startswith("'phrasebok' is neither a file nor a data set. Nearest: 'phrase")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", ["predict", "evaluate", "score", "show"])
def test_missing_run_folder_is_named(refused, pairs, tmp_path, command):
    message = refused(command, tmp_path / "absent", pairs)
    assert message.endswith("absent is not a folder. Give a run folder made by `regard train`.")


def test_folder_without_a_run_is_named(refused, tmp_path):
    assert "config.json is missing. Is" in refused("predict", tmp_path, stdin="a b\n")


def test_truncated_weights_are_named(refused, tiny_folder):
    weights = tiny_folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:5000])
    message = refused("predict", tiny_folder, stdin="a b\n")
    assert "model.safetensors is damaged" in message


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--beam", "0"), "`search.beams` must be between 1 and 1000, but is 0."),
        (("--nbest", "0"), "`nbest` must be at least 1, but is 0."),
        (("--beam", "2", "--nbest", "3"), "`nbest` must be at most the number of beams (2), but"),
        (("--device", "nonsense"), "`device` must be one of 'auto', 'cpu'"),
    ],
)
def test_invalid_argument_of_predict_is_refused(refused, tiny_run, arguments, message):
    assert message in refused("predict", tiny_run.folder, *arguments, stdin="a b\n")


@pytest.mark.parametrize(
    ("option", "value", "kind"),
    [("--beam", "many", "an integer"), ("--threads", "two", "an integer")]
    + [("--chunk", "long", "a number")],
)
def test_option_that_is_not_a_number_is_refused(refused, tiny_run, option, value, kind):
    message = refused("predict", tiny_run.folder, option, value, stdin="a b\n")
    assert message == f"`{option}` must be {kind}, but is '{value}'."


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a b\n\xff\n", "line 2, is not UTF-8"),
        (b"a\0b\n", "line 1, holds a NUL byte"),
        (LONG_LINE, "has 1,200,000 bytes"),
        (b"ID3\4\0\0", "is a recording (MP3), but must be text."),
    ],
)
def test_invalid_sources_are_refused(refused, tiny_run, tmp_path, content, message):
    path = tmp_path / "sources.txt"
    path.write_bytes(content)
    assert message in refused("predict", tiny_run.folder, path)


def test_missing_file_of_sources_is_named(refused, tiny_run):
    assert refused("predict", tiny_run.folder, "absent.txt") == "absent.txt does not exist."


def test_resuming_on_other_data_is_refused(refused, tiny_folder, pairs):
    shutil.copy(pairs, tiny_folder.parent / "other.tsv")
    message = refused("train", tiny_folder.parent / "other.tsv", "--out", tiny_folder, "--resume")
    assert "was trained on other data than" in message
