"""Result files: summaries of finished runs, without what is the same in all of them."""

import json
import math
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from regard.core.files import read_json, write_text

Row = dict[str, Any]

MAX_POINTS = 50
"""Points of a validation curve."""

TRAINING = ("stopped", "steps", "epochs", "seconds", "tokens_per_second")
SCORE = ("name", "value", "interval", "signature")
ABOUT = ("regard", "torch", "commit", "hardware", "seed", "parameters")
COMMON = ("recipe", "data", "regard", "torch", "commit", "hardware", "seed", "settings", "beams")
"""Keys that stand once in the file if all runs agree."""

_OPTIONS = re.compile(r"--(recipe|out|resume|force|valid|test)\b")
_WORD = re.compile(r"[\w.]+=\[.*?\]|\S+")


def summarise(row: Mapping[str, Any], keep: Mapping[str, Any], *, is_first: bool = True) -> Row:
    """Return what a result file holds of a run's metrics, settings and validations.

    `keep` names `scores`, groups of `test` examples (with a number of entries, 0 for all),
    `settings`, columns of the `curve`, which is kept of the first run of each name only, and
    scores with `details`.
    """
    test = row["test"]
    scores = {
        name: {key: score[key] for key in SCORE if key in score}
        | ({"detail": score["detail"]} if name in keep.get("details", ()) else {})
        for name, score in test["scores"].items()
        if name in keep.get("scores", test["scores"])
    }
    groups = {
        name: test[name] if isinstance(test[name], dict) else test[name][: limit or None]
        for name, limit in keep.get("test", {}).items()
        if name in test
    }
    training = (*TRAINING, *keep.get("training", ()))
    kept: Row = {
        "name": row["name"],
        "recipe": row["recipe"],
        "data": data_of(row["command"]),
        "overrides": overrides_of(row["command"]),
        **{key: row[key] for key in ABOUT if key in row},
        "training": {key: row["training"][key] for key in training if key in row["training"]},
        "beams": row.get("search", {}).get("beams"),
        "test": {"num_examples": test.get("num_examples"), "scores": scores, **groups},
        "settings": {name: _setting(row["settings"], name) for name in keep.get("settings", ())},
        "best": max((one["value"] for one in row["validations"] if "value" in one), default=None),
    }
    if keep.get("curve") and is_first:
        lines = [line for line in row["validations"] if keep["curve"][-1] in line]
        step = max(1, math.ceil(len(lines) / MAX_POINTS))
        lines = lines[::-1][::step][::-1]  # with the last validation
        kept["curve"] = {name: [line.get(name) for line in lines] for name in keep["curve"]}
    empty: tuple[Any, ...] = (None, {}, [])
    return {key: rounded(value) for key, value in kept.items() if value not in empty}


def _setting(settings: Any, name: str) -> Any:
    for key in name.split("."):
        settings = settings.get(key) if isinstance(settings, Mapping) else None
    return settings


def data_of(command: str) -> str:
    """Return the data of a `regard train` command, without its options."""
    return _OPTIONS.split(command.removeprefix("regard train "))[0].strip()


def overrides_of(command: str) -> list[str]:
    """Return the overrides of a command except the seed; of what is set twice, the last."""
    words = command.removeprefix("regard train ")[len(data_of(command)) :]
    found = {word.partition("=")[0]: word for word in _WORD.findall(words) if "=" in word}
    return [word for name, word in found.items() if name != "seed"]


def without_paths(text: str, runs: Path) -> str:
    """Return a text without the folders of this machine."""
    text = text.replace(os.environ.get("REGARD_DATA", "\0"), "$REGARD_DATA")
    return text.replace(f"{runs}/", "runs/")


def rounded(value: Any, digits: int = 6) -> Any:
    """Return a value with all its numbers rounded to significant digits."""
    if isinstance(value, float):
        return float(f"{value:.{digits}g}")
    if isinstance(value, Mapping):
        return {key: rounded(item, digits) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(item, digits) for item in value]
    return value


def write_results(path: Path, value: Mapping[str, Any]) -> None:
    """Write a result file; names and signatures of metrics and common values stand once."""
    runs: list[Row] = [dict(row) for row in value.get("runs", [])]
    metrics: dict[str, Row] = {}
    for row in [*runs, *value.get("together", [])]:
        for name, score in row.get("test", {}).get("scores", {}).items():
            about = {key: score[key] for key in ("name", "signature") if key in score}
            first = metrics.setdefault(name, about)
            for key in [key for key in about if first.get(key) == about[key]]:
                del score[key]
    common = {
        key: runs[0][key]
        for key in COMMON
        if len(runs) > 1 and key in runs[0] and all(run.get(key) == runs[0][key] for run in runs)
    }
    lists = [run.pop("overrides", []) for run in runs]
    shared = [w for w in lists[0] if all(w in words for words in lists)] if len(runs) > 1 else []
    for run, words in zip(runs, lists, strict=True):
        for key in common:
            del run[key]
        if changed := [word for word in words if word not in shared]:
            run["overrides"] = changed
        for name, groups in run.get("test", {}).items():
            if name.startswith("by_") and groups:  # columns take less space than rows
                run["test"][name] = {key: [one.get(key) for one in groups] for key in groups[0]}
    common |= {"overrides": shared} if shared else {}
    extra = {"common": common, "metrics": metrics, "runs": runs} if runs else {}
    write_text(path, _dump({**value, **extra}) + "\n")


def _dump(value: Mapping[str, Any]) -> str:
    """Return JSON with a line for each key and for each item of a list of tables."""
    parts = []
    for key, item in value.items():
        is_table = isinstance(item, list) and item and isinstance(item[0], dict)
        rows = [json.dumps(one, ensure_ascii=False) for one in (item if is_table else [item])]
        text = "[\n  " + ",\n  ".join(rows) + "\n ]" if is_table else rows[0]
        parts.append(f' "{key}": {text}')
    return "{\n" + ",\n".join(parts) + "\n}"


def read_results(path: Path) -> Row:
    """Read a result file, with common values put back into each run."""
    value: Row = read_json(path)
    common = value.get("common", {})
    shared = common.get("overrides", [])
    value["runs"] = [
        {**common, **run, "overrides": [*shared, *run.get("overrides", [])]}
        for run in value.get("runs", [])
    ]
    for row in [*value["runs"], *value.get("together", [])]:
        test = row.get("test", {})
        for name in [name for name in test if name.startswith("by_")]:
            rows = zip(*test[name].values(), strict=True)
            test[name] = [dict(zip(test[name], one, strict=True)) for one in rows]
        for name, score in test.get("scores", {}).items():
            score.update({**value["metrics"].get(name, {}), **score})
    return value
