"""Commands on too long texts: truncation, dropping and refusal are reported in one line."""

import pytest

TINY = (
    "--recipe", "gehring2017-laptop", "--device", "cpu",
    "data.batch.max_tokens=200", "data.batch.max_length=20",
    "model.encoder.embedding_dim=8", "model.encoder.dim=8", "model.encoder.num_layers=1",
    "model.decoder.embedding_dim=8", "model.decoder.dim=8", "model.decoder.num_layers=1",
    "model.encoder.max_length=24", "model.decoder.max_length=24",
    "train.max_epochs=1", "train.precision=fp32", "validation.metric=loss", "search.beams=1",
)  # fmt: skip


def letters(num):
    return " ".join("abcde"[number % 5] for number in range(num))


@pytest.fixture
def train(regard, pairs, tmp_path):
    """Function that trains on short pairs and one long pair of given lengths."""

    def train(num_source, num_target, *arguments):
        pairs.write_text(
            f"{letters(num_source)}\t{letters(num_target)}\n" + pairs.read_text(encoding="utf-8"),
            encoding="utf-8",
        )
        held_out = tmp_path / "held-out.tsv"
        held_out.write_text("a b\tb a\n", encoding="utf-8")
        files = (pairs, "--valid", held_out, "--test", held_out)
        return regard("train", *files, *TINY, *arguments, "--out", tmp_path / "run")

    return train


@pytest.fixture
def run(train, tmp_path):
    """A model with 24 learned positions, trained on short texts."""
    assert train(3, 3).code == 0
    return tmp_path / "run"


@pytest.mark.parametrize("is_source", [True, False], ids=["source", "target"])
@pytest.mark.parametrize(("too_long", "word"), [("drop", "dropped"), ("truncate", "truncated")])
def test_too_long_pair_in_training_is_reported(train, too_long, word, is_source):
    sides = (30, 3) if is_source else (3, 30)
    result = train(*sides, f"data.batch.too_long={too_long}")
    assert result.code == 0
    assert f"{word} 1 of 61 pairs with a side of over 20 tokens (`max_length`)" in result.err


@pytest.mark.parametrize(
    ("side", "sides", "length"), [("encoder", (18, 3), 19), ("decoder", (3, 18), 19)]
)
def test_training_on_texts_beyond_learned_positions_is_refused(
    train, tmp_path, side, sides, length
):
    result = train(*sides, f"model.{side}.max_length=16")
    assert result.code == 2
    assert result.err.splitlines()[-1] == (
        f"regard: `model.{side}.max_length` must be at least the length of the longest training "
        f"text ({length} tokens) with learned positions, but is 16. Raise it, or lower "
        "`data.batch.max_length`."
    )
    assert "step" not in result.err
    assert not (tmp_path / "run" / "model.safetensors").exists()


def test_source_longer_than_in_training_is_predicted_and_reported(regard, run):
    result = regard("predict", run, stdin=f"a b\n{letters(21)}\n")
    assert result.code == 0
    assert len(result.lines) == 2
    assert result.err.splitlines() == [
        "1 of 2 sources have over 20 tokens, the maximum length in training "
        "(`data.batch.max_length`); up to 5,000 tokens, they are not truncated."
    ]


def test_source_within_the_limit_has_no_warning(regard, run):
    assert regard("predict", run, stdin=f"{letters(19)}\n").err == ""


@pytest.mark.parametrize("command", ["predict", "evaluate", "score"])
def test_source_beyond_learned_positions_is_refused(regard, run, tmp_path, command):
    path = tmp_path / "long.tsv"
    path.write_text(letters(30) + ("\n" if command == "predict" else "\ta b\n"), encoding="utf-8")
    result = regard(command, run, path)
    assert result.code == 2
    assert result.err.splitlines()[-1] == (
        "regard: `max_length` must be at least the length of the text (31 tokens) with learned "
        "positions, but is 24. Shorten the text, or train with a larger one."
    )


def test_target_is_limited_by_learned_positions(regard, run):
    result = regard("predict", run, "search.min_length=30", stdin=f"{letters(12)}\n")
    assert result.code == 0
    assert len(result.lines[0].split()) <= 24
