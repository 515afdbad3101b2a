"""Extractors of dialogue runs: baselines without context, and replies to given prompts."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from gather import NUM_BOOTSTRAP, Together, slim
from prepare import shuffle_sources
from results import Row

from regard.data.example import Example
from regard.data.text.dialogue import write_context
from regard.metrics.text.perplexity import exp_or_infinity, perplexity
from regard.runs.saved.data import read_run_data
from regard.tasks.generation import forced_decoding
from regard.tasks.metrics import measure


def reply_baselines(context: Together, argument: Mapping[str, str]) -> Row:
    """Measure replies without their context, by perplexity, and the most frequent reply.

    The run `without` is trained and tested with shuffled contexts, so it is a language model of
    replies of the same size and vocabulary. The run `run` is tested with shuffled contexts, too.
    `ratio` is a perplexity divided by that with context, with a paired bootstrap interval.
    """
    run, without = context.find(argument["run"]), context.find(argument["without"])
    if run is None or without is None:
        return {}
    train = read_run_data(run.folder, run.task).train
    shuffled = shuffle_sources(run.test)
    nlls, lengths = _negative_log_probs(run, run.test)
    rows = [{"name": "context", "perplexity": _perplexity(nlls, lengths)}]
    others = {"context of another reply": run, "trained without context": without}
    for name, one in others.items():
        found, counted = _negative_log_probs(one, shuffled)
        if counted != lengths:
            raise SystemExit("The runs have different vocabularies. Train them again.")
        # The perplexity of differences is the ratio of the perplexities.
        differences = [other - own for other, own in zip(found, nlls, strict=True)]
        ratio = _perplexity(differences, lengths)
        rows.append({"name": name, "perplexity": _perplexity(found, lengths), "ratio": ratio})
    rows.append({"name": "unigram model", "perplexity": {"value": _unigram(run, train)}})
    return {"baselines": rows, "frequent": _frequent_reply(train, run.test)}


def _negative_log_probs(run: Any, examples: Sequence[Example]) -> tuple[list[float], list[int]]:
    """Return the negative log-probability and the number of tokens of each target."""
    scored = forced_decoding.score(run.task, examples)
    return [-one.log_prob for one in scored], [len(one.tokens) for one in scored]


def _perplexity(nlls: Sequence[float], lengths: Sequence[int]) -> Row:
    return slim(perplexity(nlls, lengths, context="", num_bootstrap=NUM_BOOTSTRAP).to_dict())


def _unigram(run: Any, train: Sequence[Example]) -> float:
    """Return the perplexity of the test replies by token frequencies, with add-one smoothing."""
    field = run.task.target
    trained, tested = (
        Counter(token for ids in field.read_all([e.target for e in side]) for token in ids[1:])
        for side in (train, run.test)
    )
    total = trained.total() + field.size
    nll = -sum(count * math.log((trained[token] + 1) / total) for token, count in tested.items())
    return exp_or_infinity(nll / tested.total())


def _frequent_reply(train: Sequence[Example], test: Sequence[Example]) -> Row:
    """Score the most frequent training reply, given to every test context."""
    reply, count = Counter(example.target for example in train).most_common(1)[0]
    references = [[example.target] for example in test]
    found = measure(("bleu", "accuracy"), [[reply]] * len(test), references)
    scores = {name: round(result.value, 2) for name, result in found.items()}
    return {"text": reply, "count": count, "num_train": len(train), **scores}


def asked_prompts(context: Together, argument: Mapping[str, Any]) -> Row:
    """Ask single prompts and whole conversations; keep the first reply of each search.

    A search has a `name`, the name of its `run` and settings that differ from those of the run. In
    a conversation, the replies of the model are part of the context of later turns.
    """
    rows = []
    for search in argument["searches"]:
        settings = {key: value for key, value in search.items() if key not in {"name", "run"}}
        if run := context.find(search["run"]):
            turns = [_converse(run, prompts, settings) for prompts in argument["conversations"]]
            rows.append({**search, "turns": turns})
    return {"asked": rows} if rows else {}


def _converse(run: Any, prompts: Sequence[str], settings: Mapping[str, Any]) -> list[str]:
    """Return prompts and replies in turn."""
    search = replace(run.task.recipe.search, **settings)
    turns: list[str] = []
    for prompt in prompts:
        turns.append(prompt)
        turns.append(str(run.task.translate([write_context(turns)], search=search)[0]))
    return turns


JOINED = (reply_baselines, asked_prompts)
"""Extractors of all finished runs together; they return keys of the result file."""
