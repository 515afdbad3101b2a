"""What several result pages share: tables, scores, samples, and how it was made."""

import re
from collections.abc import Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from PIL import Image

Runs = list[dict[str, Any]]

LEAST = 20
"""Fewer sentences than this say little."""

_WORD = re.compile(r"[\w.]+=\[.*?\]|\S+")  # the parts of a list may stand apart


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Write a table: the first column to the left, the others to the right."""
    lines = [" | ".join(head), " | ".join(["---"] + ["---:"] * (len(head) - 1))]
    lines += [" | ".join(str(cell).replace("|", "\\|") for cell in row) for row in rows]
    return "\n".join(f"| {line} |" for line in lines)


def score(run: dict[str, Any], name: str, *, digits: int = 1) -> str:
    """Write a score of a run with half its 95 % interval, or a dash if it was not taken."""
    found = run["test"]["scores"].get(name)
    if found is None:
        return "–"
    spread = ""
    if "interval" in found:
        low, high = found["interval"]
        spread = f" ± {(high - low) / 2:.{digits}f}"
    return f"{found['value']:.{digits}f}{spread}"


def noted(value: dict[str, Any]) -> list[str]:
    """Return the paragraph that a result has to say of its runs, if it has one."""
    return [value["note"], ""] if value.get("note") else []


def spread(runs: Runs, name: str, *, digits: int = 1) -> str:
    """Write the mean of a score ± its deviation over seeds; of a single run, half its interval.

    A dash if it was not taken.
    """
    if len(runs) == 1:
        return score(runs[0], name, digits=digits)
    if any(name not in run["test"]["scores"] for run in runs):
        return "–"
    found = [run["test"]["scores"][name]["value"] for run in runs]
    return f"{mean(found):.{digits}f} ± {stdev(found):.{digits}f}"


def shrink(path: Path) -> None:
    """Make a picture small by fewer colours; chosen to cover all, they keep red from purple."""
    with Image.open(path) as drawn:
        image = drawn.convert("RGB")
    small = image.quantize(method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    small.save(path, optimize=True)


def plain(text: str) -> str:
    """Return a text that Markdown shows as it is."""
    for mark in "\\`*_[]<>":
        text = text.replace(mark, f"\\{mark}")
    return " ".join(text.split())


def making(value: dict[str, Any]) -> str:
    """Say how an experiment was made: command, hardware, versions, seeds, signatures."""
    run = value["runs"][0]
    signatures = sorted({f"{s['name']} `{s['signature']}`" for s in run["test"]["scores"].values()})
    seeds = sorted({str(one["seed"]) for one in value["runs"]})
    commits = sorted({one["commit"] for one in value["runs"]})
    machines = dict.fromkeys(f"{one['hardware']}, torch {one['torch']}" for one in value["runs"])
    return "\n".join(
        [
            "## How it was made",
            "",
            f"- `{value['command']}`, each run as its own process",
            f"- {'; '.join(machines)}, commit {', '.join(commits)}, seeds {', '.join(seeds)}",
            *(f"- {signature}" for signature in signatures),
            f"- every number: [`{value['experiment']}.json`]({value['experiment']}.json)",
        ]
    )


def changes(runs: Runs) -> str:
    """Say which settings were changed from the recipes: for all, and for each that has more."""
    if not runs:
        return ""
    found = {run["name"]: _settings(run["command"]) for run in runs}
    first, *others = found.values()
    common = [word for word in first if all(word in words for words in others)]
    more = {name: [w for w in words if w not in common] for name, words in found.items()}
    told = {"all": common, **more}
    listed = "; ".join(f"{name} `{' '.join(words)}`" for name, words in told.items() if words)
    return f"Changed from the recipes: {listed or 'nothing'}."


def _settings(command: str) -> list[str]:
    """Return the settings of a command; of what is set twice, the last, which holds."""
    words = filter(_is_change, _WORD.findall(command))
    return [*{word.partition("=")[0]: word for word in words}.values()]


def _is_change(word: str) -> bool:
    """Tell whether a word of a command is a setting, and not one that a run's name tells."""
    name, equals, _ = word.partition("=")
    is_data = ":" in name  # as in `shapes:only=circle`
    return bool(equals) and not is_data and name not in ("seed", "start", "model.copying.kind")


def samples(runs: Runs, names: Sequence[str], num: int) -> str:
    """Write the first test sentences as the named runs translate them."""
    chosen = [run for run in runs if run["name"] in names]
    parts = [f"## The first {num} test sentences, unpicked", ""]
    for number in range(num):
        source, reference, _ = chosen[0]["samples"][number]
        parts += [f"{number + 1}. {source}", f"   - *reference*: {reference}"]
        parts += [f"   - {run['name']}: {run['samples'][number][2]}" for run in chosen]
    return "\n".join(parts)


def points(groups: Runs) -> list[tuple[float, float]]:
    """Return the middle of each group of lengths with its BLEU."""
    found = []
    for group in groups:
        low, _, high = group["name"].replace("≤ ", "0–").partition("–")
        if high and group["count"] >= LEAST:
            found.append(((float(low) + float(high)) / 2, group["bleu"]))
    return found


def at(run: dict[str, Any], name: str) -> str:
    """Write the BLEU of a group of lengths, or a dash if no sentence is in it."""
    found = [group["bleu"] for group in run["test"]["by_length"] if group["name"] == name]
    return f"{found[0]:.1f}" if found else "–"
