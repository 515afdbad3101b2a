"""Pre-training on unlabelled text, then fine-tuning on few labels (Devlin et al. 2019)."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.core.files import write_text
from regard.data.datasets.texts import read_text
from regard.data.example import Example
from regard.data.text.readers import write_examples
from regard.plots.curves import bars
from regard.runs.request import Request
from regard.studies.reproduce.findings import Claim, Findings, Plot
from regard.studies.reproduce.running import train_run

NOUNS = "film story plot cast music ending".split()
ADJECTIVES = {
    "positive": "great superb clever moving funny charming witty splendid fresh lovely vivid "
    "bold".split(),
    "negative": "dull boring awful silly shallow clumsy weak noisy flat stale crude messy".split(),
}
VERBS = {
    "positive": "loved enjoyed admired praised".split(),
    "negative": "hated disliked regretted despised".split(),
}
NUM_LABELLED_ADJECTIVES, NUM_LABELLED_VERBS = 4, 2
"""Numbers of words of each polarity in the labelled texts; the test has only the other words."""

Pool = tuple[slice, slice]
"""Parts of the lists of adjectives and of verbs."""

DATA = "data"
NUM_UNLABELLED, NUM_LABELLED, NUM_TEST = 4_000, 64, 400

ENCODER = (
    "model.encoder.dim=32",
    "model.encoder.num_layers=2",
    "model.encoder.num_heads=4",
    "model.encoder.feed_forward_dim=64",
    "model.encoder.max_length=16",
    "model.encoder.dropout=0.0",
)
"""Sizes of all encoders."""

PRETRAINING = (
    *ENCODER,
    "data.packing=lines",
    "data.tokenizer.kind=word",
    "data.batch.max_tokens=640",
    "data.batch.max_length=16",
    # With 15 %, mostly one word of these short texts is masked, and often not a sentiment word.
    "data.masking.share=0.3",
    "train.max_steps=800",
    "train.validate_every=800",
    "train.optimizer.learning_rate=0.003",
    "train.schedule.warmup_steps=50",
)
"""Overrides of all masked language models."""

SCRATCH, TEACHER, STUDENT = "labels-only", "RoBERTa", "DistilBERT"


@dataclass(frozen=True)
class Variant:
    """One kind of pre-training."""

    recipe: str
    idea: str
    settings: tuple[str, ...] = ()


VARIANTS = {
    "RoBERTa": Variant("liu2019-laptop", "other masked tokens in every epoch"),
    "ALBERT": Variant(
        "lan2020-small",
        "layers share parameters",
        # Shared layers have fewer parameters and need a higher rate.
        (
            "model.next_sentence=0",
            "model.encoder.embedding_dim=16",
            "train.optimizer.learning_rate=0.006",
        ),
    ),
    "SpanBERT": Variant("joshi2020-small", "spans are masked", ("data.masking.max_words=3",)),
    "DistilBERT": Variant(
        "sanh2019-small", "one layer, trained by a teacher", ("model.encoder.num_layers=1",)
    ),
}
"""Kinds of pre-training by the name of the paper's model."""

FINE_TUNING = (
    "data.source.kind=word",
    "data.batch.max_sentences=16",
    "data.batch.max_length=16",
    "train.max_epochs=0",
    "train.max_steps=120",
    "train.validate_every=30",
    "train.optimizer.learning_rate=0.002",
    "train.schedule.warmup_steps=10",
)
"""Overrides of all classifiers; a pre-trained encoder brings its own sizes."""

SEEN, UNSEEN = "words with labels %", "words without labels %"
PARAMETERS, MASKED = "parameters", "masked tokens %"


def pretraining(seed: int, folder: Path) -> Findings:
    """Pre-train several encoders and fine-tune each on the same few labels.

    Args:
        seed: Seed of the texts and the models.
        folder: Folder of the data and the runs.
    """
    tests = write_data(folder / DATA, seed)
    rows: dict[str, dict[str, float | str]] = {}
    for name in (SCRATCH, *VARIANTS):
        masked = _pretrain(name, folder, seed) if name in VARIANTS else "–"
        task = _fine_tune(name, folder, seed)
        rows[name] = {
            "idea": VARIANTS[name].idea if name in VARIANTS else "labels only",
            PARAMETERS: task.num_parameters,
            MASKED: masked,
            **{column: _accuracy(task, examples) for column, examples in tests.items()},
        }
    figure = bars(
        {name: float(row[UNSEEN]) for name, row in rows.items()},
        x_label="accuracy on words that never had a label, %",
    )
    caption = (
        f"Sentiment after fine-tuning on {NUM_LABELLED} labelled texts. The sentiment words of the "
        "test texts occur only in the unlabelled texts; chance is 50 %."
    )
    return Findings(
        tables={"Sentiment of test texts": rows},
        claims=_claims(rows),
        plots={"pretraining": Plot(figure, caption)},
    )


def sample_review(polarity: str, words: random.Random, pool: Pool) -> str:
    """Sample a text whose sentiment words all have one polarity."""
    first, second, third = words.sample(ADJECTIVES[polarity][pool[0]], 3)
    one, other = words.sample(NOUNS, 2)
    verb = words.choice(VERBS[polarity][pool[1]])
    return words.choice(
        (
            f"the {one} was {first} and {second} , i {verb} it",
            f"i {verb} the {one} : {first} , {second} and {third}",
            f"a {first} {one} and a {second} {other}",
        )
    )


def _reviews(num: int, seed: int, pool: Pool) -> list[Example]:
    words = random.Random(seed)
    polarities = [words.choice(list(ADJECTIVES)) for _ in range(num)]
    return [Example(sample_review(one, words, pool), one) for one in polarities]


def write_data(data: Path, seed: int) -> dict[str, list[Example]]:
    """Write unlabelled texts and labelled training texts; return the two test sets."""
    every = slice(None), slice(None)
    seen = slice(NUM_LABELLED_ADJECTIVES), slice(NUM_LABELLED_VERBS)
    unseen = slice(NUM_LABELLED_ADJECTIVES, None), slice(NUM_LABELLED_VERBS, None)
    texts = [one.source for one in _reviews(NUM_UNLABELLED + NUM_TEST, seed, every)]
    write_text(data / "held-out.txt", "\n".join(texts[:NUM_TEST]) + "\n")
    write_text(data / "texts.txt", "\n".join(texts[NUM_TEST:]) + "\n")
    write_examples(data / "train.jsonl", _reviews(NUM_LABELLED, seed + 1, seen))
    tests = {
        SEEN: _reviews(NUM_TEST, seed + 2, seen),
        UNSEEN: _reviews(NUM_TEST, seed + 3, unseen),
    }
    write_examples(data / "valid.jsonl", _reviews(NUM_LABELLED, seed + 4, seen))
    write_examples(data / "test.jsonl", tests[SEEN])
    return tests


def _pretrain(name: str, folder: Path, seed: int) -> float:
    """Pre-train one variant; return its accuracy on masked tokens of other texts."""
    variant, data = VARIANTS[name], folder / DATA
    held_out = (str(data / "held-out.txt"),)
    teacher = (f"teacher={_run_folder(folder, TEACHER, seed)}",) if name == STUDENT else ()
    request = Request(
        data=(str(data / "texts.txt"),),
        valid=held_out,
        test=held_out,
        recipe=variant.recipe,
        settings=(*PRETRAINING, *variant.settings, *teacher),
        out=folder / name,
    )
    return _accuracy(train_run(request, seed), read_text(held_out[0]))


def _fine_tune(name: str, folder: Path, seed: int) -> Any:
    """Train a classifier on the labelled texts, from a pre-trained encoder if there is one."""
    data = folder / DATA
    encoder = (f"init_from={_run_folder(folder, name, seed)}",) if name in VARIANTS else ENCODER
    request = Request(
        data=(str(data / "train.jsonl"),),
        valid=(str(data / "valid.jsonl"),),
        test=(str(data / "test.jsonl"),),
        recipe="sst2-bert",
        settings=(*FINE_TUNING, *encoder),
        out=folder / f"{name}-fine-tuned",
    )
    return train_run(request, seed)


def _run_folder(folder: Path, name: str, seed: int) -> Path:
    return folder / f"{name}-{seed}"


def _accuracy(task: Any, examples: Sequence[Example]) -> float:
    value: float = task.evaluate(examples).results["accuracy"].value
    return value


def _claims(rows: dict[str, dict[str, Any]]) -> tuple[Claim, ...]:
    scratch, teacher, shared = (rows[name] for name in (SCRATCH, TEACHER, "ALBERT"))
    student = rows[STUDENT]
    return (
        Claim(
            "A few labels are enough for the words that they contain.",
            f"{scratch[SEEN]:.1f} % without pre-training",
            scratch[SEEN] > 90,
        ),
        Claim(
            "Without pre-training, words without labels are classified by chance.",
            f"{scratch[UNSEEN]:.1f} %",
            scratch[UNSEEN] < 65,
        ),
        Claim(
            "Unlabelled text carries the labels over to words of like use.",
            f"{teacher[UNSEEN]:.1f} % with masked-token pre-training",
            teacher[UNSEEN] > 90,
        ),
        Claim(
            "ALBERT has fewer parameters: all layers share theirs.",
            f"{shared[PARAMETERS]:,} instead of {teacher[PARAMETERS]:,}; {shared[UNSEEN]:.1f} %",
            shared[PARAMETERS] < 0.75 * teacher[PARAMETERS],
        ),
        Claim(
            "DistilBERT keeps most of its teacher's accuracy with half the layers.",
            f"{student[UNSEEN]:.1f} % and {teacher[UNSEEN]:.1f} %",
            student[UNSEEN] > teacher[UNSEEN] - 10,
        ),
    )
