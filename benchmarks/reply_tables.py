"""Components of the page about conversations."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from components import Page, other_file, plain, scores, table, with_interval
from results import Row, read_results


def reply_perplexities(page: Page) -> str:
    """Return the perplexity of replies with and without their context."""
    if "baselines" in page.value:
        return _baselines(page.value["baselines"])
    curves = page.value["validations"]
    parameters = page.value["runs"][0]["parameters"] / 1e6
    return (
        f"The trainings of the large model ({parameters:.1f} M parameters) were cut short, so this "
        "is the perplexity of the validation replies by the number of updates, of 4,000 in all, "
        f"seed 1. A small model was trained to its end, below.\n\n{_by_updates(curves)}"
    )


def _baselines(rows: Sequence[Row]) -> str:
    cells = [(one["name"], with_interval(one["perplexity"]), _ratio(one)) for one in rows]
    return table(("replies", "perplexity", "ratio to context"), cells)


def _ratio(row: Row) -> str:
    if "ratio" not in row:
        return ""
    low, high = row["ratio"]["interval"]
    return f"{row['ratio']['value']:.3f} [{low:.3f}, {high:.3f}]"


def _by_updates(curves: Sequence[Row]) -> str:
    """Return a table of validation perplexities, from losses by step."""
    rows = [(one["name"], *(f"{np.exp(loss):.1f}" for loss in one["loss"])) for one in curves]
    return table(("trained", *(f"{step:,} updates" for step in curves[0]["step"])), rows)


def frequent_reply(page: Page) -> str:
    """Return the scores of the most frequent training reply."""
    one = page.value["frequent"]
    return (
        f"The most frequent training reply ({one['count']} of {one['num_train']:,}) is "
        f"“{one['text']}”. Given to every context of the test set, it has {one['bleu']} BLEU and "
        f"is correct for {one['accuracy']} %."
    )


def small_replies(page: Page, file: str) -> str:
    """Return how a small model was trained, and its perplexities with and without context."""
    value = read_results(page.folder / file)
    run = value["runs"][0]
    columns = ("parameters", "updates=@training/steps:,", "perplexity")
    more = ("distinct-1 %=distinct1:3", "distinct-2 %=distinct2:3", "minutes")
    names = {"replies": "with context", "no context": "without context"}
    curves = [{**one["curve"], "name": names[one["name"]]} for one in value["runs"]]
    parts = [
        f"`{run['recipe']}` has {run['parameters'] / 1e6:.1f} M parameters and was trained for "
        f"only {run['training']['steps']:,} updates, less than an epoch, with one thread. Other "
        "programs used the CPU cores as well, so its duration is not that of an idle machine. Both "
        "runs have the same settings, seed and vocabulary: "
        f"`{' '.join(run['overrides'])}`. The replies of this table are by greedy search.",
        scores(replace(page, value=value), *columns, *more),
        "Perplexity of the validation replies by the number of updates:",
        _by_updates(curves),
        "Perplexity of the test replies. The ratio to that with context has a paired 95 % "
        "bootstrap interval over replies, not over seeds; `context of another reply` is the model "
        "with context, tested with shuffled contexts.",
        _baselines(value["baselines"]),
        f"{run['hardware']}, torch {run['torch']}, commit {run['commit']}, seed {run['seed']}: "
        f"{other_file(page, file)}.",
    ]
    return "\n\n".join(parts)


def asked_replies(page: Page, file: str) -> str:
    """Return prompts and replies in their order, of the page's models or else of another file."""
    is_own = "asked" in page.value
    value = page.value if is_own else read_results(page.folder / file)
    run, found = value["runs"][0], value["asked"]
    size = f"{run['parameters'] / 1e6:.1f} M parameters, {run['training']['steps']:,} updates"
    missing = (
        "" if is_own else " The large model (`python benchmarks/run.py dialogue`) was not asked."
    )
    parts = [
        f"The prompts of Vinyals & Le 2015, as they are and in their order, to `{run['recipe']}` "
        f"({size}): the first reply of each search, none left out.{missing} The last five are one "
        "conversation; its replies are part of the context. The original model was trained on film "
        "subtitles and, for the last conversation, on a help desk; this one on chat of students.",
        "\n".join(f"- *{one['name']}*: `{one['run']}`, {_settings(one)}" for one in found),
        _different(found),
    ]
    for conversations in zip(*(one["turns"] for one in found), strict=True):
        names = [one["name"] for one in found]
        lines = []
        for index, prompt in enumerate(conversations[0][::2]):
            replies = [turns[2 * index + 1] for turns in conversations]
            lines.append(f"- {plain(prompt)}")
            lines += [
                f"  - {name}: {plain(reply) or '∅'}"
                for name, reply in zip(names, replies, strict=True)
            ]
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def _different(found: Sequence[Row]) -> str:
    """Return how many of the replies of each search are different."""
    replies = {
        one["name"]: [text for turns in one["turns"] for text in turns[1::2]] for one in found
    }
    num = len(next(iter(replies.values())))
    listed = ", ".join(f"{name} {len({*texts})}" for name, texts in replies.items())
    return f"Different replies to the {num} prompts: {listed}."


def _settings(search: Row) -> str:
    about = ("name", "run", "turns")
    return ", ".join(f"{key} {value}" for key, value in search.items() if key not in about)


COMPONENTS = (reply_perplexities, frequent_reply, small_replies, asked_replies)
"""Functions that the page may call."""
