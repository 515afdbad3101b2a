"""A tiny BERT learns a small grammar with a dependency between distant words."""

import random

import pytest

from regard.data.example import Example
from regard.runs import folder as runs
from regard.runs.request import Request
from regard.runs.train import train

pytestmark = pytest.mark.learn

SINGULAR = {"cat": "meows", "dog": "barks", "hen": "clucks", "cow": "moos", "pig": "grunts"}
ADJECTIVES = ("old", "small", "wet", "happy", "grey")


def write_line(generator):
    """Return a sentence whose noun determines its action, with up to three words between them."""
    noun, action = generator.choice(list(SINGULAR.items()))
    between = " ".join(
        generator.choices(("often", "really", "never", "loudly"), k=3)[: generator.randint(0, 3)]
    )
    return " ".join(f"the {generator.choice(ADJECTIVES)} {noun} {between} {action} .".split())


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    generator = random.Random(0)
    path = tmp_path_factory.mktemp("grammar") / "text.txt"
    path.write_text("".join(write_line(generator) + "\n" for _ in range(3000)), encoding="utf-8")
    return str(path)


@pytest.fixture(scope="module")
def learn(files, tmp_path_factory):
    """Train a tiny model on the grammar."""

    def run(*overrides):
        settings = (
            "seed=1",
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
            *overrides,
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


def masked_accuracy(task, *, mask_action):
    """Return the accuracy of predicting masked actions, or nouns, from the other."""
    generator = random.Random(1)
    lines, answers = [], []
    for _ in range(100):
        words = write_line(generator).split()
        position = -2 if mask_action else 2
        answers.append(words[position])
        words[position] = "<mask>"
        lines.append(" ".join(words))
    found = task.predict(lines)
    right = sum(
        best[0].tokens[0].removeprefix("▁") == answer
        for best, answer in zip(found, answers, strict=True)
    )
    return right / len(lines)


@pytest.mark.quick
def test_action_is_predicted_from_its_noun(learned):
    # Chance is a fifth among the five actions.
    assert masked_accuracy(learned, mask_action=True) >= 0.9


def test_noun_is_predicted_from_its_action(learned):
    assert masked_accuracy(learned, mask_action=False) >= 0.9


def test_correct_sentence_has_a_higher_score(learned):
    right, wrong = learned.score(
        [Example("the old cat never meows ."), Example("the old cat never barks .")]
    )
    assert right.log_prob > wrong.log_prob + 1


def test_student_learns_from_its_teacher(learn, folder):
    overrides = (f"teacher={folder}", "model.encoder.num_layers=1", "train.max_steps=300")
    student = runs.load(learn(*overrides), "cpu")
    assert masked_accuracy(student, mask_action=True) >= 0.9
