"""Commands on visual questions: a question, a tab and an image."""

import pytest

SMALL = (
    "data.source.image.size=16",
    "model.encoder.text.dim=8",
    "model.encoder.image.widths=[4]",
    "model.encoder.image.blocks=[1]",
    "train.max_steps=2",
    "train.schedule.warmup_steps=0",
    "--device=cpu",
)
SOURCE = "what colour is the star\tscenes/0/4"
LONG = f"what colour is {'the shape ' * 5_000}\tscenes/0/4"
TOO_LONG = "of over 32 tokens (`max_length`)"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Folder with files of questions, one of them of 10,000 words."""
    folder = tmp_path_factory.mktemp("questions")
    answers = ("yes", "no") * 6
    for seed, name in enumerate(("train", "held")):
        lines = [f"is there a star\tscenes/{seed}/{n}\t{one}\n" for n, one in enumerate(answers)]
        more = [f"{LONG}\tyes\n"] if name == "train" else []
        (folder / f"{name}.tsv").write_text("".join([*lines, *more]), encoding="utf-8")
    return folder


@pytest.fixture
def run(regard, folder):
    if not (folder / "run" / "metrics.json").exists():
        held = folder / "held.tsv"
        result = regard(
            "train", folder / "train.tsv", "--valid", held, "--test", held,
            "--recipe", "easy-vqa-laptop", "--out", folder / "run", *SMALL,
        )  # fmt: skip
        assert result.code == 0, result.err
        assert f"dropped 1 of 13 pairs with a side {TOO_LONG}" in result.err
    return folder / "run"


def test_truncation_of_a_question_is_reported(regard, run, tmp_path):
    (tmp_path / "sources.tsv").write_text(f"{SOURCE}\n{LONG}\n", encoding="utf-8")
    result = regard("predict", run, tmp_path / "sources.tsv")
    assert result.code == 0 and len(result.lines) == 2
    assert result.err == "shortened 1 of 2 texts to 32 tokens (`max_length`)\n"


def test_questions_are_evaluated(regard, run, folder):
    result = regard("evaluate", run, folder / "train.tsv")
    assert result.code == 0, result.err
    assert result.lines[0].startswith("accuracy ")
    assert "shortened 1 of 13 texts" in result.err


def test_attention_over_words_and_image_is_plotted(regard, run, tmp_path):
    result = regard("show", run, SOURCE, "--out", tmp_path / "plot.png")
    assert result.code == 0, result.err
    assert result.lines[0] in ("yes", "no")
    assert all((tmp_path / name).stat().st_size for name in ("plot.png", "plot-words.png"))
