"""Extractors: what result files hold of finished runs besides their scores."""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from textwrap import shorten
from typing import Any

import torch
from first_sentence import first_sentence
from plan import Run
from results import Row
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from regard.core.errors import ConfigError
from regard.core.files import read_json, read_json_lines
from regard.data.example import Example
from regard.data.text.columns import as_source
from regard.data.text.field import as_text
from regard.data.text.readers import read_json_lines as read_examples
from regard.metrics.grouping import by_length
from regard.metrics.significance import PAIRED, paired_bootstrap_of_runs
from regard.metrics.table import METRICS
from regard.metrics.text.bleu import bleu
from regard.runs import folder as runs
from regard.runs import reranking
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
        found: list[str] = read_json(self.folder / runs.PREDICTIONS)
        return found

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
    rows = [row for row, source in enumerate(sources) if len(source.split()) > LONG]
    if rows:
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
        row = {"name": name, "members": len(found), "parameters": task.num_parameters}
        rows.append({**row, "test": test})
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
    turn = reranking.last_turn
    reranked = reranking.rerank(run.task, backward.task, sources, reverse_target=turn)
    replies = {
        "people": [example.target for example in test],
        "beam search": run.task.translate(sources),
        "sampling": run.task.translate(sources, search=sampling),
        "reranking": [found[0].text for found in reranked],
    }
    rows = []
    for name, outputs in replies.items():
        row = {"name": name, **_scored(("distinct1", "distinct2"), outputs, run, shown=20)}
        words = sum(len(one.split()) for one in outputs)
        row["test"] |= {"mean_words": round(words / len(test), 2)}
        row["test"] |= {"num_different": len({*outputs})}
        rows.append(row)
    return {"together": rows}


def image_differences(context: Together, argument: Mapping[str, str]) -> Row:
    """Compare translations with the image to those without it and with another image."""
    outputs: dict[str, list[Sequence[str]]] = {"right": [], "no image": [], "another image": []}
    seeds = []
    for run in context.seeds(argument["run"]):
        without = context.find(argument["without"], run.run.seed)
        if without is None:
            continue
        texts = [example.source[0] for example in run.test]
        if texts != [as_text(example.source) for example in without.test]:
            raise SystemExit("The runs were tested on different sentences. Train them again.")
        images = [example.source[1] for example in run.test]
        half = len(images) // 2
        others = list(zip(texts, images[half:] + images[:half], strict=True))
        found = run.predictions, without.predictions, run.task.translate(others)
        for name, texts in zip(outputs, found, strict=True):
            outputs[name].append(texts)
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


Extractor = Callable[[Any, Any], Row]
EVERY_SEED: tuple[Extractor, ...] = (bleu_by_length, is_averaged, forward_flops)
"""Extractors of one run: (the run, argument of the plan) → keys of its row."""
FIRST_SEED: tuple[Extractor, ...] = (samples, attention_maps, generated_texts, sentence_latents)
"""Extractors that run for the first seed of each name only."""
JOINED: tuple[Extractor, ...] = (
    ensembles, comparison, lead_baseline, reply_searches, image_differences,
)  # fmt: skip
"""Extractors of all finished runs together; they return keys of the result file."""
