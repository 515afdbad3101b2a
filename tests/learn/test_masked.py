"""A tiny BERT learns a small grammar: it fills gaps by what stands far from them."""

import random
import time

import pytest

from regard.data.example import Example
from regard.runs import folder as runs
from regard.runs.request import Request
from regard.runs.train import train

pytestmark = pytest.mark.learn

SINGULAR = {"cat": "meows", "dog": "barks", "hen": "clucks", "cow": "moos", "pig": "grunts"}
ADJECTIVES = ("old", "small", "wet", "happy", "grey")


def write_line(generator):
    """A sentence whose verb tells its noun, with up to three words between them."""
    noun, verb = generator.choice(list(SINGULAR.items()))
    between = " ".join(
        generator.choices(("often", "really", "never", "loudly"), k=3)[: generator.randint(0, 3)]
    )
    return " ".join(f"the {generator.choice(ADJECTIVES)} {noun} {between} {verb} .".split())


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    generator = random.Random(0)
    path = tmp_path_factory.mktemp("grammar") / "text.txt"
    path.write_text("".join(write_line(generator) + "\n" for _ in range(3000)), encoding="utf-8")
    return str(path)


@pytest.fixture(scope="module")
def learn(files, tmp_path_factory):
    """Train a tiny model on the grammar, with a seed that was never tried before."""

    def run(*words):
        seed = time.time_ns() // 1_000 % 2**31
        print(f"seed {seed}")
        settings = (
            f"seed={seed}",
            "data.packing=lines",
            "data.tokenizer.kind=word",
            "data.batch.max_tokens=1024",
            "data.batch.max_length=16",
            "model.encoder.max_length=16",
            "model.encoder.dim=64",
            "model.encoder.feed_forward_dim=128",
            "train.max_steps=800",
            "train.validate_every=400",
            "train.schedule.warmup_steps=80",
            *words,
        )
        out = tmp_path_factory.mktemp("runs") / "masked"
        request = Request(
            data=(files,), recipe="liu2019-laptop", settings=settings, out=out, device="cpu"
        )
        return train(request).folder

    return run


@pytest.fixture(scope="module")
def folder(learn):
    return learn()


@pytest.fixture(scope="module")
def learned(folder):
    return runs.load(folder, "cpu")


def share_right(task, *, hide_verb):
    """How many nouns, or verbs, are told from the other."""
    generator = random.Random(1)
    lines, answers = [], []
    for _ in range(100):
        words = write_line(generator).split()
        place = -2 if hide_verb else 2
        answers.append(words[place])
        words[place] = "<mask>"
        lines.append(" ".join(words))
    found = task.predict(lines)
    right = sum(
        best[0].tokens[0].removeprefix("▁") == answer
        for best, answer in zip(found, answers, strict=True)
    )
    return right / len(lines)


@pytest.mark.quick
def test_a_verb_is_told_from_its_noun(learned):
    # Chance is a fifth for who knows that a verb is missing.
    assert share_right(learned, hide_verb=True) >= 0.9


def test_a_noun_is_told_from_its_verb(learned):
    assert share_right(learned, hide_verb=False) >= 0.9


def test_a_sentence_is_likelier_than_one_with_the_wrong_verb(learned):
    right, wrong = learned.score(
        [Example("the old cat never meows ."), Example("the old cat never barks .")]
    )
    assert right.log_prob > wrong.log_prob + 1


def test_a_student_learns_what_its_teacher_knows(learn, folder):
    words = (f"teacher={folder}", "model.encoder.num_layers=1", "train.max_steps=300")
    student = runs.load(learn(*words), "cpu")
    assert share_right(student, hide_verb=True) >= 0.9
