"""Extractors: what result files hold of finished runs besides their scores."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from textwrap import shorten
from typing import Any

import gather_audio
import gather_images
import paraphrases
import torch
from first_sentence import first_sentence
from flops import count_flops
from plan import Run
from prepare import paraphrase_splits
from results import Row

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


@dataclass(frozen=True)
class Together:
    """All finished runs of an experiment."""

    out: Path
    """The folder of result files and plots."""
    planned: list[tuple[Run, Path]]
    rows: list[Row]

    def find(self, name: str, seed: int = 1) -> Finished | None:
        """Return a finished run by its name."""
        found = (
            Finished(r, f, self.out) for r, f in self.planned if (r.name, r.seed) == (name, seed)
        )
        return next(found, None)

    def seeds(self, name: str) -> list[Finished]:
        """Return the finished runs of a name."""
        return [Finished(run, folder, self.out) for run, folder in self.planned if run.name == name]


def samples(run: Finished, argument: Any) -> Row:
    """Return the first test examples: source, target and prediction.

    Args:
        run: The run.
        argument: Their number, or a table: `count`, and `source`, which is `first` for the first
            of several inputs, `references` for all references in its stead, or `tags` for the
            first example of every tag.
    """
    options = {"count": argument} if isinstance(argument, int) else argument
    kind = options.get("source", "")
    rows = range(min(options.get("count", len(run.test)), len(run.test)))
    chosen = list(_first_by_tag(run.test).values()) if kind == "tags" else list(rows)
    return {"samples": [_sample(run.test[row], run.predictions[row], kind=kind) for row in chosen]}


def _sample(example: Example, prediction: str, *, kind: str = "") -> list[str]:
    source: Any = example.source
    if kind == "references":
        source = " · ".join([example.target, *example.references])
        return [source, "", prediction]
    if not isinstance(source, str):
        source = source[0] if kind == "first" else " ‖ ".join(source)
    source = shorten(as_text(source).replace("\t", " "), MAX_SAMPLE, placeholder=" …")
    return [source, example.target, prediction]


def _first_by_tag(test: Sequence[Example]) -> dict[str, int]:
    first: dict[str, int] = {}
    for row, example in enumerate(test):
        first.setdefault(example.tags[0], row)
    return first


def bleu_by_length(run: Finished, edges: Sequence[int]) -> Row:
    """Score translations by source length, long ones together, and all of them lower-cased."""
    sources = [str(example.source) for example in run.test]
    groups = by_length(sources, run.predictions, run.references, edges=edges)
    found: Row = {
        "by_length": [
            {"name": g.name, "count": g.count, "bleu": round(g.results["bleu"].value, 2)}
            for g in groups
        ]
    }
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

    Args:
        run: The run.
        argument: `sources`: texts by the first word of a run's name, or by `all`; or `count`: the
            first test examples of at most `max_words` source words with their predictions; or
            `tags`: the first example of each of these tags. `runs` limits it to some names.
    """
    if run.run.name not in argument.get("runs", [run.run.name]):
        return {}
    sources = argument.get("sources", {})
    texts = sources.get(run.run.name.split()[0], sources.get("all", []))
    if texts:
        outputs = run.task.translate(texts)
        examples = [Example(text, output) for text, output in zip(texts, outputs, strict=True)]
    elif "tags" in argument:
        first = _first_by_tag(run.test)
        rows = [row for tag, row in first.items() if int(tag.split()[0]) in argument["tags"]]
        examples = [Example(run.test[row].source, run.predictions[row]) for row in rows]
    else:
        most = argument.get("max_words", 10**6)
        pairs = zip(run.test, run.predictions, strict=True)
        short = [pair for pair in pairs if len(as_text(pair[0].source).split()) <= most]
        examples = [
            Example(example.source, example.target if argument.get("is_target") else output)
            for example, output in short[: argument["count"]]
        ]
    found = zip(examples, run.task.attend(examples), strict=True)
    return {"maps": [row for example, one in found if (row := attention_map(example, one))]}


def attention_map(example: Example, attention: Any) -> Row | None:
    """Return one map with weights of two digits, or nothing if it is empty or too wide."""
    if not attention.weights.shape[0] or len(attention.labels[1]) > MAX_COLUMNS:
        return None
    return {
        "source": shorten(as_text(example.source), 80, placeholder=" …"),
        "target": example.target,
        "kind": attention.kind,
        "rows": attention.labels[0],
        "columns": attention.labels[1],
        "weights": [[round(w, 2) for w in row] for row in attention.mean().tolist()],
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
    between = [
        [
            sentences[i],
            *run.task.decode(interpolate(latents[i], latents[i + 1], 7)),
            sentences[i + 1],
        ]
        for i in range(0, len(latents), 2)
    ]
    found: Row = {"dim": run.task.recipe.model.encoder.bottleneck.dim, "interpolations": between}
    try:
        sampled = run.task.decode(sample_latents(run.task, argument["samples"], seed=0))
    except ConfigError:  # only variational models have a prior
        return found
    return {**found, "sampled": sampled}


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
        rows.append(
            {
                "name": name,
                "members": len(found),
                "parameters": task.num_parameters,
                "test": {"scores": score["scores"], "num_examples": len(found[0].test)},
            }
        )
    return {"together": rows}


def comparison(context: Together, baseline: str) -> Row:
    """Add to each row its difference to the baseline, BLEU by length and accuracy by position."""
    finished = [folder for _, folder in context.planned]
    found = compare(finished).to_dict()
    by_folder = {Path(one["folder"]).name: one for one in found["runs"]}
    for (run, _), row in zip(context.planned, context.rows, strict=True):
        row["comparison"] = compared(by_folder[run.folder])
    return {"baseline": baseline, "num_examples": found["num_examples"]}


def compared(one: Mapping[str, Any]) -> Row:
    """Return what result files hold of a run's comparison with the baseline."""
    found: Row = {"by_length": [], "by_position": []}
    for name, metric in (("by_length", "bleu"), ("by_position", "accuracy")):
        for group in one[name]:
            position = next(v for k, v in group.items() if k not in ("name", "count", metric))
            found[name].append([round(position, 2), round(group[metric], 2), group["count"]])
    if "bleu" in one["differences"]:
        found["difference"] = one["differences"]["bleu"]
    return found


def lead_baseline(context: Together, argument: Mapping[str, str]) -> Row:
    """Score the first sentence as a summary."""
    rows = []
    for data, name in argument.items():
        run = context.find(name)
        if run is None:
            continue
        leads = [first_sentence(example.source) for example in run.test]
        names = [name for name in run.task.recipe.metrics if name in METRICS]
        shown = [_sample(*pair) for pair in zip(run.test[:8], leads, strict=False)]
        test = {"scores": _measure(names, leads, run), "num_examples": len(leads)}
        rows.append({"name": "lead", "data": data, "test": test, "samples": shown})
    return {"together": rows}


def _measure(names: Sequence[str], outputs: Sequence[str], run: Finished) -> Row:
    references = run.references[: len(outputs)]
    found = measure(names, [[one] for one in outputs], references, num_bootstrap=NUM_BOOTSTRAP)
    return {name: result.to_dict() for name, result in found.items()}


def reply_searches(context: Together, argument: Mapping[str, Any]) -> Row:
    """Compare replies of people, beam search, sampling and reranking by a reversed model."""
    run, backward = context.find(argument["run"]), context.find(argument["reversed"])
    if run is None or backward is None:
        return {}
    test = run.test[: argument["count"]]
    sources = [example.source for example in test]
    sampling = replace(run.task.recipe.search, temperature=0.8, top_p=0.9)
    reranked = reranking.rerank(
        run.task, backward.task, sources, reverse_target=reranking.last_turn
    )
    replies = {
        "people": [example.target for example in test],
        "beam search": run.task.translate(sources),
        "sampling": run.task.translate(sources, search=sampling),
        "reranking": [found[0].text for found in reranked],
    }
    rows = []
    for name, outputs in replies.items():
        scores = _measure(("distinct1", "distinct2"), outputs, run)
        test_row = {
            "scores": scores,
            "num_examples": len(test),
            "mean_words": round(sum(len(one.split()) for one in outputs) / len(test), 2),
            "num_different": len({*outputs}),
        }
        shown = [_sample(*pair) for pair in zip(test[:20], outputs, strict=False)]
        rows.append({"name": name, "test": test_row, "samples": shown})
    return {"together": rows}


def image_differences(context: Together, argument: Mapping[str, str]) -> Row:
    """Compare translations with the image to those without it and with another image."""
    seeds = [
        seed
        for seed in (1, 2, 3)
        if context.find(argument["run"], seed) and context.find(argument["without"], seed)
    ]
    outputs: dict[str, dict[int, Sequence[str]]] = {
        "right": {},
        "no image": {},
        "another image": {},
    }
    pairs: Any = [
        (s, context.find(argument["run"], s), context.find(argument["without"], s)) for s in seeds
    ]
    first = [(example.source[0], example.target) for example in pairs[0][1].test] if pairs else []
    for seed, run, without in pairs:
        tested = [(example.source[0], example.target) for example in run.test]
        texts = [(_text(example.source), example.target) for example in without.test]
        if tested != first or texts != first:
            raise SystemExit("The runs were tested on different sentences. Train them again.")
        images = [example.source[1] for example in run.test]
        half = len(images) // 2
        others = [
            (text, i) for (text, _), i in zip(first, images[half:] + images[:half], strict=True)
        ]
        outputs["right"][seed] = run.predictions
        outputs["no image"][seed] = without.predictions
        outputs["another image"][seed] = run.task.translate(others)
    rows = []
    for name in ("no image", "another image"):
        for title, chosen in (*((str(seed), [seed]) for seed in seeds), ("all", seeds)):
            found = {
                metric: paired_bootstrap_of_runs(
                    [outputs[name][seed] for seed in chosen],
                    [outputs["right"][seed] for seed in chosen],
                    pairs[0][1].references,
                    metric=metric,
                ).to_dict()
                for metric in PAIRED
            }
            rows.append({"baseline": name, "seeds": title, "differences": found})
    return {"differences": rows}


def _text(source: Any) -> str:
    return source if isinstance(source, str) else str(source[0])


def paraphrase_retrieval(run: Finished, data: str) -> Row:
    """Score the retrieval of paraphrases by the encoder's sentence vectors."""
    return paraphrases.measure_run(run.task, _paraphrases(data))


def paraphrase_baseline(_context: Together, data: str) -> Row:
    """Score the same retrieval by bags of words."""
    return paraphrases.measure_baseline(data, _paraphrases(data))


@cache
def _paraphrases(data: str) -> paraphrases.Paraphrases:
    return paraphrases.find_paraphrases(paraphrase_splits(data).test)


EXTRACTORS: dict[str, tuple[Callable[[Any, Any], Row], bool]] = {
    "samples": (samples, False),
    "bleu_by_length": (bleu_by_length, True),
    "is_averaged": (is_averaged, True),
    "attention_maps": (attention_maps, False),
    "generated_texts": (generated_texts, False),
    "sentence_latents": (sentence_latents, False),
    "forward_flops": (forward_flops, True),
    "paraphrase_retrieval": (paraphrase_retrieval, True),
    **gather_images.EXTRACTORS,
    **gather_audio.EXTRACTORS,
}
"""Extractors of one run by name, and whether they run for every seed or only for the first."""

JOINED: dict[str, Callable[[Together, Any], Row]] = {
    "ensembles": ensembles,
    "comparison": comparison,
    "lead_baseline": lead_baseline,
    "reply_searches": reply_searches,
    "image_differences": image_differences,
    "paraphrase_baseline": paraphrase_baseline,
    **gather_images.JOINED,
    **gather_audio.JOINED,
}
"""Extractors of all finished runs together by name; they return keys of the result file."""
