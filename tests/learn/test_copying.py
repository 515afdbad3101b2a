"""Models with a copy mechanism generate unseen names; models without it do not."""

import random

import pytest

from regard.data.example import Example

pytestmark = pytest.mark.learn

JOINT = (
    "data.is_joint=true",
    "data.source.kind=bpe",
    "data.source.vocab_size=800",
    "metrics=['accuracy']",
)
WIDTHS = ("dim=64", "num_layers=2", "num_heads=4", "feed_forward_dim=128", "dropout=0.0")
TRANSFORMER = {
    "recipe": "pointer-small-laptop",
    "sizes": (
        *(f"model.{side}.{width}" for side in ("encoder", "decoder") for width in WIDTHS),
        "train.optimizer.learning_rate=0.002",
    ),
}
RECURRENT = {
    "recipe": "see2017-laptop",
    "sizes": tuple(
        f"model.{side}.{width}"
        for side in ("encoder", "decoder")
        for width in ("embedding_dim=64", "dim=64", "dropout=0.0")
    ),
}
COPYING = ("model.copying.kind=pointer", "model.copying.dim=32", "model.copying.coverage=1.0")

THINGS = ("maps", "tables", "letters", "photos", "songs", "games")
DEEDS = ("makes", "reads", "sorts", "sends", "prints")
SENTENCES = (
    "the program {name} {deed} {things} .",
    "{things} are what {name} {deed} .",
    "who {deed} {things} ? it is {name} .",
    "with {name} everybody {deed} {things} .",
)


def describe(num, *, seed):
    """Return sentences about programs with unique names, and their entries in a list."""
    generator = random.Random(seed)
    names = set()
    while len(names) < num:
        names.add("".join(generator.choices("abcdefghijklmnoprstuvwz", k=generator.randint(5, 8))))
    examples = []
    for name in sorted(names):
        deed, things = generator.choice(DEEDS), generator.choice(THINGS)
        source = generator.choice(SENTENCES).format(name=name, deed=deed, things=things)
        examples.append(Example(source, f"{name} : {deed} {things}"))
    generator.shuffle(examples)
    return examples


@pytest.fixture(
    scope="module", params=[{}, RECURRENT, TRANSFORMER], ids=["gru", "see2017", "transformer"]
)
def pointer(request, learn):
    return learn(describe, *JOINT, *COPYING, **request.param)


def test_unseen_names_are_copied(pointer, value):
    # Two runs of each had 100.
    assert value(pointer, "accuracy") >= 90


def test_unseen_names_need_copying(learn, value):
    # A run had 32: only some tokens of the names were wrong.
    assert value(learn(describe, *JOINT), "accuracy") <= 70


def test_copy_weights_are_largest_at_the_name(pointer):
    examples = describe(50, seed=0)
    predictor = pointer.predictor
    num_right = num_tokens = 0
    for example, found in zip(examples, predictor.attend(examples), strict=True):
        assert found.kind == "copying"
        name = predictor.target.tokenizer.encode(example.target.split()[0])
        weights = found.mean()
        for row, token in enumerate(found.target[: len(name)]):
            num_tokens += 1
            num_right += (
                found.source[int(weights[row].argmax())] == token and weights[row].max() > 0.5
            )
        # The colon is in no source.
        assert weights[len(name)].sum() < 0.5
    assert num_right >= 0.9 * num_tokens
