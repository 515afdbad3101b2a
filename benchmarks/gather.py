"""Extractors: what result files hold of finished runs besides their scores."""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import product
from pathlib import Path
from textwrap import shorten
from typing import Any

import torch
from first_sentence import first_sentence
from plan import Run
from prepare import paraphrase_splits
from results import Row, rounded
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from regard.core.errors import ConfigError
from regard.core.files import read_json, read_json_lines
from regard.data.example import Example
from regard.data.splits import Splits
from regard.data.text.columns import as_source
from regard.data.text.field import as_text
from regard.data.text.readers import read_json_lines as read_examples
from regard.interpret.embed import embed, project
from regard.interpret.probes import untrained_copy
from regard.metrics.grouping import by_length
from regard.metrics.representation.vectors import Array, BagOfWords, cosines, retrieve, shared_words
from regard.metrics.significance import PAIRED, paired_bootstrap_of_runs
from regard.metrics.table import METRICS
from regard.metrics.text.bleu import bleu
from regard.runs import folder as runs
from regard.runs.reranking import last_turn, rerank
from regard.studies.compare.comparison import compare
from regard.tasks.latents import interpolate, sample_latents
from regard.tasks.metrics import measure

MAX_SAMPLE = 300
"""Characters of a sample's source."""
MAX_COLUMNS = 48
"""Columns of an attention map that can be read."""
LONG = 20
"""Source words above which a sentence is long."""
NUM_BOOTSTRAP = 200
NUM_GROUPS, NUM_SENTENCES, NUM_QUERIES = 4, 4, 12
"""Groups of paraphrases in the plot, sentences of each, and queries whose nearest one is listed."""
MAX_SHARED = 0.25
"""Share of common words at most for paraphrases that use other words."""


@dataclass(frozen=True)
class Finished:
    """A finished run; its model and its test examples are loaded when they are used."""

    run: Run
    folder: Path
    out: Path
    """The folder of result files and plots."""

    @cached_property
    def task(self) -> Any:
        """The trained model with its data processing."""
        return runs.load(self.folder)

    @cached_property
    def test(self) -> list[Example]:
        """The test examples."""
        path = self.folder / runs.TEST
        lines = path.read_text(encoding="utf-8").split("\n")
        return [example for _, example in read_examples(str(path), lines, join=as_source)]

    @cached_property
    def predictions(self) -> list[str]:
        """The predictions for the test examples."""
        return list(read_json(self.folder / runs.PREDICTIONS))

    @property
    def references(self) -> list[list[str]]:
        """All references of each test example."""
        return [[example.target, *example.references] for example in self.test]

    def image(self, name: str) -> Path:
        """Return the path of an image on the page of the experiment."""
        name = name.replace(",", "").replace(" ", "-")
        return self.out / f"{self.folder.parent.name}-{name}.png"


@dataclass(frozen=True)
class Together:
    """All finished runs of an experiment, with their rows of the result file."""

    runs: list[Finished]
    rows: list[Row]

    def find(self, name: str, seed: int = 1) -> Finished | None:
        """Return a finished run by its name."""
        return next((one for one in self.seeds(name) if one.run.seed == seed), None)

    def seeds(self, name: str) -> list[Finished]:
        """Return the finished runs of a name."""
        return [one for one in self.runs if one.run.name == name]


def samples(run: Finished, argument: Any) -> Row:
    """Return the first test examples: source, target and prediction.

    The argument is their number, or a table of `count` and `source`: `first` of several inputs,
    `references` in its stead, or `tags` for the first example of every tag.
    """
    options = {"count": argument} if isinstance(argument, int) else argument
    kind = options.get("source", "")
    rows = first_by_tag(run.test).values() if kind == "tags" else range(len(run.test))
    chosen = list(rows)[: options.get("count")]
    return {"samples": [_sample(run.test[row], run.predictions[row], kind=kind) for row in chosen]}


def _sample(example: Example, prediction: str, *, kind: str = "") -> list[str]:
    source: Any = example.source
    if kind == "references":
        return [" · ".join([example.target, *example.references]), "", prediction]
    if not isinstance(source, str):
        source = source[0] if kind == "first" else " ‖ ".join(source)
    source = shorten(as_text(source).replace("\t", " "), MAX_SAMPLE, placeholder=" …")
    return [source, example.target, prediction]


def first_by_tag(test: Sequence[Example]) -> dict[str, int]:
    """Return the first test example of each tag."""
    rows = range(len(test) - 1, -1, -1)
    return dict(sorted({test[row].tags[0]: row for row in rows}.items(), key=lambda one: one[1]))


def bleu_by_length(run: Finished, edges: Sequence[int]) -> Row:
    """Score translations by source length, long ones together, and all of them lower-cased."""
    sources = [str(example.source) for example in run.test]
    groups = by_length(sources, run.predictions, run.references, edges=edges)
    lengths = [
        {"name": one.name, "count": one.count, "bleu": round(one.results["bleu"].value, 2)}
        for one in groups
    ]
    found: Row = {"by_length": lengths}
    if rows := [row for row, source in enumerate(sources) if len(source.split()) > LONG]:
        score = bleu([run.predictions[r] for r in rows], [run.references[r] for r in rows])
        found["bleu_long"] = {"value": score.value, "count": len(rows)}
    lowered = bleu(run.predictions, run.references, is_lower_cased=True)
    return {"test_groups": found, "test_scores": {"bleu_lower_cased": lowered.to_dict()}}


def is_averaged(run: Finished, _argument: object) -> Row:
    """Return whether the tested weights are an average of those of several validations."""
    rows = read_json_lines(run.folder / runs.TRAINING_LOG)
    return {"is_averaged": any(row["kind"] == "average" and row["is_best"] for row in rows)}


def attention_maps(run: Finished, argument: Mapping[str, Any]) -> Row:
    """Return attention maps.

    The argument has `sources`: texts by the first word of a run's name, or by `all`; or `tags`: of
    the first example of each; or `count`: the first test examples of at most `max_words` source
    words, with their predictions or, if `is_target`, with their targets. `runs` limits it to names.
    """
    if run.run.name not in argument.get("runs", [run.run.name]):
        return {}
    sources = argument.get("sources", {})
    if texts := sources.get(run.run.name.split()[0], sources.get("all", [])):
        pairs = list(zip(texts, run.task.translate(texts), strict=True))
    elif "tags" in argument:
        first = first_by_tag(run.test)
        rows = [row for tag, row in first.items() if int(tag.split()[0]) in argument["tags"]]
        pairs = [(run.test[row].source, run.predictions[row]) for row in rows]
    else:
        most = argument.get("max_words", 10**6)
        outputs = [one.target for one in run.test] if "is_target" in argument else run.predictions
        tested = zip(run.test, outputs, strict=True)
        short = [(e.source, o) for e, o in tested if len(as_text(e.source).split()) <= most]
        pairs = short[: argument["count"]]
    examples = [Example(*pair) for pair in pairs]
    found = zip(examples, run.task.attend(examples), strict=True)
    return {
        "maps": [
            {
                "source": shorten(as_text(example.source), 80, placeholder=" …"),
                "target": example.target,
                "rows": one.labels[0],
                "columns": one.labels[1],
                "weights": [[round(w, 2) for w in row] for row in one.mean().tolist()],
            }
            for example, one in found
            if one.weights.shape[0] and len(one.labels[1]) <= MAX_COLUMNS
        ]
    }


def generated_texts(run: Finished, prompts: Mapping[str, str]) -> Row:
    """Return a continuation of the data set's prompt, sampled at temperature 0.8 with seed 1."""
    search = replace(run.task.recipe.search, temperature=0.8, seed=1)
    found = run.task.predict([prompts[run.run.data[0]]], search=search, num_best=3)
    return {"text": found[0][0].text[:600]}


def sentence_latents(run: Finished, argument: Mapping[str, int]) -> Row:
    """Return decoded interpolations between test sentences, and decoded samples of the prior."""
    sentences = [example.source for example in run.test[: 2 * argument["interpolations"]]]
    latents = run.task.encode(sentences)
    between = []
    for i in range(0, len(latents), 2):
        decoded = run.task.decode(interpolate(latents[i], latents[i + 1], 7))
        between.append([sentences[i], *decoded, sentences[i + 1]])
    found: Row = {"dim": run.task.recipe.model.encoder.bottleneck.dim, "interpolations": between}
    with suppress(ConfigError):  # only variational models have a prior
        found["sampled"] = run.task.decode(sample_latents(run.task, argument["samples"], seed=0))
    return found


def forward_flops(run: Finished, _argument: object) -> Row:
    """Return the floating-point operations of classifying one image."""
    task: Any = runs.load(run.folder, "cpu")
    image, mask = torch.zeros(1, *task.source.spec.shape), torch.ones(1, 1, dtype=torch.bool)
    with torch.no_grad():
        return {"flops": count_flops(task.model, (image, mask))}


def ensembles(context: Together, argument: Mapping[str, Sequence[str]]) -> Row:
    """Score ensembles."""
    rows = []
    for name, members in argument.items():
        found = [one for member in members for one in context.seeds(member)]
        if len(found) < 2:
            continue
        task = runs.load(",".join(str(one.folder) for one in found))
        score = task.evaluate(found[0].test, num_bootstrap=1000).to_dict()
        test = {"scores": score["scores"], "num_examples": len(found[0].test)}
        about = {"members": len(found), "parameters": task.num_parameters}
        rows.append({"name": name, **about, "test": test})
    return {"together": rows}


def comparison(context: Together, baseline: str) -> Row:
    """Add to each row its difference to the baseline, BLEU by length and accuracy by position."""
    found = compare([run.folder for run in context.runs]).to_dict()
    for row, one in zip(context.rows, found["runs"], strict=True):
        groups = {"by_length": "bleu", "by_position": "accuracy"}
        row["comparison"] = {name: _points(one[name], metric) for name, metric in groups.items()}
        if "bleu" in one["differences"]:
            row["comparison"]["difference"] = one["differences"]["bleu"]
    return {"baseline": baseline, "num_examples": found["num_examples"]}


def _points(groups: Sequence[Row], metric: str) -> list[list[float]]:
    """Return position, score and number of examples of each group."""
    points = []
    for group in groups:
        position = next(v for k, v in group.items() if k not in ("name", "count", metric))
        points.append([round(position, 2), round(group[metric], 2), group["count"]])
    return points


def lead_baseline(context: Together, argument: Mapping[str, str]) -> Row:
    """Score the first sentence as a summary."""
    rows = []
    for data, name in argument.items():
        if run := context.find(name):
            leads = [first_sentence(example.source) for example in run.test]
            metrics = [name for name in run.task.recipe.metrics if name in METRICS]
            rows.append({"name": "lead", "data": data, **_scored(metrics, leads, run, shown=8)})
    return {"together": rows}


def _scored(names: Sequence[str], outputs: Sequence[str], run: Finished, *, shown: int) -> Row:
    """Return scores and samples of outputs for the first test examples of a run."""
    references = run.references[: len(outputs)]
    found = measure(names, [[one] for one in outputs], references, num_bootstrap=NUM_BOOTSTRAP)
    scores = {name: result.to_dict() for name, result in found.items()}
    samples = [_sample(*pair) for pair in zip(run.test[:shown], outputs, strict=False)]
    return {"test": {"scores": scores, "num_examples": len(outputs)}, "samples": samples}


def reply_searches(context: Together, argument: Mapping[str, Any]) -> Row:
    """Compare replies of people, beam search, sampling and reranking by a reversed model."""
    run, backward = context.find(argument["run"]), context.find(argument["reversed"])
    if run is None or backward is None:
        return {}
    test = run.test[: argument["count"]]
    sources = [example.source for example in test]
    sampling = replace(run.task.recipe.search, temperature=0.8, top_p=0.9)
    reranked = rerank(run.task, backward.task, sources, reverse_target=last_turn)
    replies = {
        "people": [example.target for example in test],
        "beam search": run.task.translate(sources),
        "sampling": run.task.translate(sources, search=sampling),
        "reranking": [found[0].text for found in reranked],
    }
    rows = []
    for name, outputs in replies.items():
        row = {"name": name, **_scored(("distinct1", "distinct2"), outputs, run, shown=20)}
        words = sum(len(one.split()) for one in outputs) / len(test)
        row["test"] |= {"mean_words": round(words, 2), "num_different": len({*outputs})}
        rows.append(row)
    return {"together": rows}


def with_other_images(test: Sequence[Example]) -> list[Any]:
    """Return sources of text and image, each with the image of another example."""
    texts, images = zip(*(example.source for example in test), strict=True)
    half = len(images) // 2
    return list(zip(texts, images[half:] + images[:half], strict=True))


def image_differences(context: Together, argument: Mapping[str, str]) -> Row:
    """Compare translations with the image to those without it and with another image."""
    outputs: dict[str, list[Sequence[str]]] = {"right": [], "no image": [], "another image": []}
    seeds = []
    for run in context.seeds(argument["run"]):
        without = context.find(argument["without"], run.run.seed)
        if without is None:
            continue
        if [e.source[0] for e in run.test] != [as_text(e.source) for e in without.test]:
            raise SystemExit("The runs were tested on different sentences. Train them again.")
        outputs["right"].append(run.predictions)
        outputs["no image"].append(without.predictions)
        outputs["another image"].append(run.task.translate(with_other_images(run.test)))
        seeds.append(run.run.seed)
        references = run.references
    rows = []
    parts = [*((str(seed), slice(i, i + 1)) for i, seed in enumerate(seeds)), ("all", slice(None))]
    for name, (title, part) in product(("no image", "another image"), parts if seeds else ()):
        pair = outputs[name][part], outputs["right"][part]
        differences = {
            metric: paired_bootstrap_of_runs(*pair, references, metric=metric).to_dict()
            for metric in PAIRED
        }
        rows.append({"baseline": name, "seeds": title, "differences": differences})
    return {"differences": rows}


class Paraphrases:
    """German sentences of a test set, grouped by the English sentence that they translate."""

    def __init__(self, test: Sequence[Example]) -> None:
        groups: dict[str, str] = {}
        for example in test:  # each sentence once, with its first translation
            groups.setdefault(example.source, example.target)
        self.sentences, self.groups = list(groups), list(groups.values())
        self.members: dict[str, list[int]] = {}
        for row, group in enumerate(self.groups):
            self.members.setdefault(group, []).append(row)
        several = [rows for rows in self.members.values() if len(rows) > 1]
        self.queries = [rows[0] for rows in several][:NUM_QUERIES]
        large = [rows[:NUM_SENTENCES] for rows in several if len(rows) > 2]
        self.plotted = [row for rows in large[:NUM_GROUPS] for row in rows]
        self.other_words = [row for rows in several for row in rows if self._is_unlike(row, rows)]

    def _is_unlike(self, row: int, rows: Sequence[int]) -> bool:
        """Return whether a sentence shares few words with every other one of its group."""
        others = [self.sentences[other] for other in rows if other != row]
        return all(shared_words(self.sentences[row], other) <= MAX_SHARED for other in others)

    def describe(self, rows: Sequence[int]) -> list[Row]:
        """Return sentences with their groups."""
        return [{"text": self.sentences[row], "group": self.groups[row]} for row in rows]

    def nearest(self, vectors: Array) -> list[Row]:
        """Return the nearest sentence of each query, and whether it is a paraphrase."""
        similar = cosines(vectors[self.queries], vectors)
        similar[range(len(similar)), self.queries] = -2
        pairs = zip(self.queries, similar.argmax(1), strict=True)
        return [
            {"text": self.sentences[row], "is_right": self.groups[row] == self.groups[query]}
            for query, row in pairs
        ]

    def score(self, vectors: Array) -> Row:
        """Score the retrieval of all paraphrases, and of those with mostly other words."""
        similar = cosines(vectors, vectors)
        scores: Row = {}
        for name, queries in (("all", None), ("other_words", self.other_words)):
            found = retrieve(similar, self.groups, queries=queries, num_bootstrap=1_000)
            scores[name] = {metric: result.to_dict() for metric, result in found.items()}
        return scores


@cache
def read_paraphrases(data: str) -> tuple[Paraphrases, Splits]:
    """Return the paraphrases of the test part of a data set, and all parts."""
    splits = paraphrase_splits(data)
    return Paraphrases(splits.test), splits


def slim(scores: Row) -> Row:
    """Return values and intervals only."""
    if "value" in scores:
        return {key: scores[key] for key in ("value", "interval") if key in scores}
    return {name: slim(one) for name, one in scores.items()}


def paraphrase_retrieval(run: Finished, data: str) -> Row:
    """Score a trained encoder beside its untrained copy, and project the sentences of the plot."""
    found, _ = read_paraphrases(data)
    vectors = {kind: embed(run.task, found.sentences, pooling=kind) for kind in ("summary", "mean")}
    before = embed(untrained_copy(run.task), found.sentences, pooling="summary")
    points, share = project(vectors["summary"][found.plotted])
    return {
        "retrieval": {kind: slim(found.score(rows)) for kind, rows in vectors.items()},
        "untrained": slim(found.score(before)["all"]["accuracy"]),
        "points": rounded(points.tolist(), 4),
        "variance": share,
        "nearest": found.nearest(vectors["summary"]),
    }


def paraphrase_baseline(_context: Together, data: str) -> Row:
    """Score bags of words, and describe the sentences that the page shows."""
    found, splits = read_paraphrases(data)
    bag = BagOfWords([example.source for example in splits.train])(found.sentences)
    scores = found.score(bag)
    return {
        "data": splits.note,
        "retrieval": slim(scores),
        "signature": scores["all"]["accuracy"]["signature"],
        "counts": {name: scores[name]["accuracy"]["detail"] for name in scores},
        "nearest": found.nearest(bag),
        "plotted": found.describe(found.plotted),
        "queries": found.describe(found.queries),
    }


def count_flops(model: Callable[..., object], inputs: Sequence[object] = ()) -> int:
    """Return the floating-point operations of `model(*inputs)`: two per multiplication and sum.

    Products of matrices and convolutions are counted, which is nearly all. Fused kernels that hide
    them (attention; recurrent layers of MKL-DNN and cuDNN) are replaced by plain ones for the
    count, so it is the same on every device.
    """
    before, *_ = torch.backends.mkldnn.set_flags(False)
    try:
        with sdpa_kernel(SDPBackend.MATH), torch.backends.cudnn.flags(enabled=False):
            with FlopCounterMode(display=False) as counter:
                model(*inputs)
    finally:
        torch.backends.mkldnn.set_flags(before)
    return int(counter.get_total_flops())


def resident(name: str, pid: int | str = "self") -> int:
    """Return the bytes of memory that a process has (VmRSS), or had at most (VmHWM); on Linux."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    found = re.search(rf"{name}:\s+(\d+) kB", status)
    return 1024 * int(found[1]) if found else 0


EVERY_SEED = (bleu_by_length, is_averaged, forward_flops, paraphrase_retrieval)
"""Extractors of one run: (the run, argument of the plan) → keys of its row."""
FIRST_SEED = (samples, attention_maps, generated_texts, sentence_latents)
"""Extractors that run for the first seed of each name only."""
JOINED = (
    ensembles, comparison, lead_baseline, reply_searches, image_differences, paraphrase_baseline,
)  # fmt: skip
"""Extractors of all finished runs together; they return keys of the result file."""
