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
from regard.metrics.text.perplexity import exp_or_infinity
from regard.runs.train import read_run_data
from regard.tasks.generation.evaluation import measure_perplexity
from regard.tasks.metrics import measure


def reply_baselines(context: Together, argument: Mapping[str, str]) -> Row:
    """Measure replies without their context, by perplexity, and the most frequent reply.

    The run `without` is trained and tested with shuffled contexts, so it is a language model of
    replies of the same size and vocabulary. The run `run` is tested with shuffled contexts, too.
    """
    run, without = context.find(argument["run"]), context.find(argument["without"])
    if run is None or without is None:
        return {}
    train = read_run_data(run.folder, run.task).train
    models = {
        "context": (run, run.test),
        "context of another reply": (run, shuffle_sources(run.test)),
        "trained without context": (without, shuffle_sources(run.test)),
    }
    rows = [
        {
            "name": name,
            "perplexity": slim(
                measure_perplexity(one.task, test, num_bootstrap=NUM_BOOTSTRAP).to_dict()
            ),
        }
        for name, (one, test) in models.items()
    ]
    rows.append({"name": "unigram model", "perplexity": {"value": _unigram(run, train)}})
    return {"baselines": rows, "frequent": _frequent_reply(train, run.test)}


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
    """Ask a run single prompts and whole conversations; keep the first greedy reply of each.

    In a conversation, the replies of the model are part of the context of later turns.
    """
    run = context.find(argument["run"])
    if run is None:
        return {}
    greedy = replace(run.task.recipe.search, beams=1)

    def reply(turns: Sequence[str]) -> str:
        return str(run.task.translate([write_context(turns)], search=greedy)[0])

    conversations = []
    for prompts in argument["conversations"]:
        turns: list[str] = []
        for prompt in prompts:
            turns.append(prompt)
            turns.append(reply(turns))
        conversations.append(turns)
    return {"conversations": conversations}


JOINED = (reply_baselines, asked_prompts)
"""Extractors of all finished runs together; they return keys of the result file."""
