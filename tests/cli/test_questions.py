"""Questions about pictures, as a person asks them: a question, a tab and an image."""

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
ASKED = "what colour is the star\tscenes/0/4"
LONG = f"what colour is {'the shape ' * 5_000}\tscenes/0/4"
SAID = "of over 32 tokens (`max_length`)"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Questions in files, one of them of 10,000 words; a run is made of them at its first use."""
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
        answer = regard(
            "train", folder / "train.tsv", "--valid", held, "--test", held,
            "--recipe", "easy-vqa-laptop", "--out", folder / "run", *SMALL,
        )  # fmt: skip
        assert answer.code == 0, answer.err
        assert f"dropped 1 of 13 pairs with a side {SAID}" in answer.err
    return folder / "run"


def test_a_question_of_10_000_words_is_shortened_and_said_so(regard, run, tmp_path):
    (tmp_path / "asked.tsv").write_text(f"{ASKED}\n{LONG}\n", encoding="utf-8")
    answer = regard("predict", run, tmp_path / "asked.tsv")
    assert answer.code == 0 and len(answer.lines) == 2
    assert answer.err == "shortened 1 of 2 texts to 32 tokens (`max_length`)\n"


def test_questions_are_measured(regard, run, folder):
    answer = regard("evaluate", run, folder / "train.tsv")
    assert answer.code == 0, answer.err
    assert answer.lines[0].startswith("accuracy ")
    assert "shortened 1 of 13 texts" in answer.err


def test_what_was_looked_at_is_drawn(regard, run, tmp_path):
    answer = regard("show", run, ASKED, "--out", tmp_path / "seen.png")
    assert answer.code == 0, answer.err
    assert answer.lines[0] in ("yes", "no")
    assert all((tmp_path / name).stat().st_size for name in ("seen.png", "seen-words.png"))
