"""German verb position: word-based statistical against neural translation (7.6)."""

import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.data.example import Example
from regard.data.text.readers import write_examples
from regard.metrics.text.bleu import bleu
from regard.metrics.text.verb_position import misplaced_verbs
from regard.plots.curves import bars
from regard.runs.request import Request
from regard.studies.reproduce.findings import Claim, Findings, Plot
from regard.studies.reproduce.running import train_run

SUBJECTS = {
    "the owner": "der Besitzer",
    "the teacher": "der Lehrer",
    "the woman": "die Frau",
    "the child": "das Kind",
    "the neighbour": "der Nachbar",
    "the student": "die Studentin",
    "a girl": "ein Mädchen",
    "a doctor": "ein Arzt",
}
OBJECTS = {
    "this information": "diese Information",
    "the letter": "den Brief",
    "the video": "das Video",
    "the house": "das Haus",
    "a dog": "einen Hund",
    "the city": "die Stadt",
    "the old bridge": "die alte Brücke",
    "hundreds of books": "hunderte Bücher",
}
VERBS = {
    "sees": "sieht",
    "reads": "liest",
    "buys": "kauft",
    "loves": "liebt",
    "describes": "beschreibt",
    "needs": "braucht",
    "paints": "malt",
    "shows": "zeigt",
}
CONJUNCTIONS = {"when": "wenn", "because": "weil", "although": "obwohl", "while": "während"}

NUM_TRAIN, NUM_TEST = 1_500, 200
NUM_EM_STEPS = 8

NEURAL = {"RNN, fixed context": "cho2014-laptop", "RNN with attention": "bahdanau2015-laptop"}
STATISTICAL = "words by IBM Model 1"
SETTINGS = (
    "data.source.kind=word",
    "data.target.kind=word",
    "data.batch.max_tokens=400",
    "model.encoder.embedding_dim=48",
    "model.encoder.dim=64",
    "model.decoder.embedding_dim=48",
    "model.decoder.dim=64",
    "train.max_epochs=8",
    "train.validate_every=400",
    "train.optimizer.learning_rate=0.004",
    "search.beams=1",
)
"""Overrides of both neural models."""

BLEU, MISPLACED = "BLEU", "misplaced verbs %"


@dataclass
class WordTranslation:
    """Translation word by word with the probabilities t(f | e) of IBM Model 1 (Brown et al. 1993).

    Its words keep the order of the source: there is no model of reordering.
    """

    best: dict[str, str]
    """Most probable translation of each source word."""

    @classmethod
    def fit(cls, examples: Sequence[Example]) -> "WordTranslation":
        """Estimate t(f | e) by expectation maximisation from pairs without alignments."""
        pairs = [(one.source.split(), one.target.split()) for one in examples]
        t: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(lambda: 1.0))
        for _ in range(NUM_EM_STEPS):
            counts: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
            for source, target in pairs:
                for f in target:
                    total = sum(t[e][f] for e in source)
                    for e in source:
                        counts[e][f] += t[e][f] / total
            t = defaultdict(
                dict,
                {
                    e: {f: num / sum(row.values()) for f, num in row.items()}
                    for e, row in counts.items()
                },
            )
        return cls({e: max(row, key=row.__getitem__) for e, row in t.items()})

    def translate(self, source: str) -> str:
        """Translate each word, in the order of the source."""
        return " ".join(self.best.get(word, word) for word in source.split())


def verb_position(seed: int, folder: Path) -> Findings:
    """Translate dependent clauses with all models and count misplaced verbs.

    Args:
        seed: Seed of the sentences and the models.
        folder: Folder of the data and the runs.
    """
    examples = sample_sentences(NUM_TRAIN + 2 * NUM_TEST, seed)
    test, valid, train = (
        examples[:NUM_TEST],
        examples[NUM_TEST : 2 * NUM_TEST],
        examples[2 * NUM_TEST :],
    )
    for name, part in {"train": train, "valid": valid, "test": test}.items():
        write_examples(folder / "data" / f"{name}.jsonl", part)
    words = WordTranslation.fit(train)
    outputs = {STATISTICAL: [words.translate(one.source) for one in test]}
    for name, recipe in NEURAL.items():
        task = _train(recipe, folder, seed)
        predictions = task.predict([one.source for one in test])
        outputs[name] = [best[0].text for best in predictions]
    references = [one.target for one in test]
    rows = {name: _measure(output, references) for name, output in outputs.items()}
    return Findings(
        tables={
            "Translations of the test set": rows,
            "The first test sentence": _first(test[0], outputs),
        },
        claims=_claims(rows),
        plots={"verb-position": _plot(rows)},
    )


def sample_sentences(num: int, seed: int) -> list[Example]:
    """Sample different sentences of a main and a dependent clause, in either order."""
    words = random.Random(seed)
    examples: dict[str, Example] = {}
    while len(examples) < num:
        one, other = _sample_clause(words), _sample_clause(words)
        conjunction = words.choice(list(CONJUNCTIONS))
        # In a dependent clause, the German verb comes last; after one, the verb comes first.
        dependent = f"{CONJUNCTIONS[conjunction]} {other.subject} {other.object} {other.verb}"
        if words.random() < 0.5:
            source = f"{one.english} , {conjunction} {other.english} ."
            target = f"{one.subject} {one.verb} {one.object} , {dependent} ."
        else:
            source = f"{conjunction} {other.english} , {one.english} ."
            target = f"{dependent} , {one.verb} {one.subject} {one.object} ."
        examples[source] = Example(source, target)
    return list(examples.values())


@dataclass(frozen=True)
class _Clause:
    english: str
    subject: str
    verb: str
    object: str


def _sample_clause(words: random.Random) -> _Clause:
    subject, verb, thing = (words.choice(list(table)) for table in (SUBJECTS, VERBS, OBJECTS))
    english = f"{subject} {verb} {thing}"
    return _Clause(english, SUBJECTS[subject], VERBS[verb], OBJECTS[thing])


def _train(recipe: str, folder: Path, seed: int) -> Any:
    files = [(str(folder / "data" / f"{part}.jsonl"),) for part in ("train", "valid", "test")]
    request = Request(
        data=files[0],
        valid=files[1],
        test=files[2],
        recipe=recipe,
        settings=SETTINGS,
        out=folder / recipe,
    )
    return train_run(request, seed)


def _measure(outputs: Sequence[str], references: Sequence[str]) -> dict[str, float]:
    return {
        BLEU: bleu(outputs, [[reference] for reference in references]).value,
        MISPLACED: misplaced_verbs(outputs, references).value,
    }


def _first(example: Example, outputs: dict[str, list[str]]) -> dict[str, dict[str, str]]:
    rows = {"source": example.source, "reference": example.target}
    rows |= {name: sentences[0] for name, sentences in outputs.items()}
    return {name: {"sentence": sentence} for name, sentence in rows.items()}


def _claims(rows: dict[str, dict[str, float]]) -> tuple[Claim, ...]:
    words, fixed, attentive = (rows[name] for name in (STATISTICAL, *NEURAL))
    return (
        Claim(
            "Translation word by word leaves the verb at its English position.",
            f"{words[MISPLACED]:.1f} % of the verbs are misplaced",
            words[MISPLACED] > 50,
        ),
        Claim(
            "Neural translation puts the verb of a dependent clause last.",
            f"{attentive[MISPLACED]:.1f} % of the verbs are misplaced with attention",
            attentive[MISPLACED] < 5,
        ),
        Claim(
            "Each generation of models has a higher BLEU.",
            f"{words[BLEU]:.1f}, {fixed[BLEU]:.1f} and {attentive[BLEU]:.1f}",
            words[BLEU] < fixed[BLEU] <= attentive[BLEU] + 0.5,
        ),
    )


def _plot(rows: dict[str, dict[str, float]]) -> Plot:
    figure = bars(
        {name: row[MISPLACED] for name, row in rows.items()},
        x_label="verbs of dependent clauses at a wrong position, %",
    )
    return Plot(
        figure, "The German verb of a dependent clause comes last; the English one does not."
    )
