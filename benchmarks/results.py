"""Result files: summaries of finished runs, without what is the same in all of them."""

import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from regard.core.files import read_json, write_text

Row = dict[str, Any]

MAX_POINTS = 50
"""Points of a validation curve."""

MAX_LINE = 180
TRAINING = ("stopped", "steps", "epochs", "seconds", "tokens_per_second")
ABOUT = ("regard", "torch", "commit", "hardware", "seed", "parameters")
COMMON = ("recipe", "data", "regard", "torch", "commit", "hardware", "seed", "settings", "beams")
"""Keys that stand once in the file if all runs agree."""

_OPTIONS = re.compile(r"--(recipe|out|resume|force|valid|test)\b")
_WORD = re.compile(r"[\w.]+=\[.*?\]|\S+")


def summarise(row: Mapping[str, Any], keep: Mapping[str, Any], *, is_first: bool = True) -> Row:
    """Return what a result file holds of a finished run.

    Args:
        row: The run's metrics, with its full `settings` and its `validations`.
        keep: What the plan keeps: `scores`, `test` (group name → number of entries, 0 for all),
            `settings` (dotted names), `curve` (columns), `details` (scores with their detail).
        is_first: Whether it is the first run of its name, whose curve is kept.
    """
    test = row["test"]
    scores = {
        name: _score(score, has_detail=name in keep.get("details", ()))
        for name, score in test["scores"].items()
        if name in keep.get("scores", test["scores"])
    }
    groups = {
        name: test[name] if isinstance(test[name], dict) else test[name][: limit or None]
        for name, limit in keep.get("test", {}).items()
        if name in test
    }
    kept: Row = {
        "name": row["name"],
        "recipe": row["recipe"],
        "data": data_of(row["command"]),
        "overrides": overrides_of(row["command"]),
        **{key: row[key] for key in ABOUT if key in row},
        "training": {
            key: row["training"][key]
            for key in (*TRAINING, *keep.get("training", ()))
            if key in row["training"]
        },
        "beams": row.get("search", {}).get("beams"),
        "test": {"num_examples": test.get("num_examples"), "scores": scores, **groups},
        "settings": {name: _setting(row["settings"], name) for name in keep.get("settings", ())},
        "best": max((line.get("value", -math.inf) for line in row["validations"]), default=None),
    }
    if keep.get("curve") and is_first:
        kept["curve"] = _curve(row["validations"], keep["curve"])
    empty: tuple[Any, ...] = (None, {}, [], -math.inf)
    return {key: rounded(value) for key, value in kept.items() if value not in empty}


def _score(score: Mapping[str, Any], *, has_detail: bool) -> Row:
    keys = ["name", "value", "interval", "signature", *(["detail"] if has_detail else [])]
    return {key: score[key] for key in keys if key in score}


def _setting(settings: Any, name: str) -> Any:
    for key in name.split("."):
        settings = settings.get(key) if isinstance(settings, Mapping) else None
    return settings


def _curve(validations: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> Row:
    rows = [row for row in validations if columns[-1] in row]
    step = max(1, math.ceil(len(rows) / MAX_POINTS))
    # The last validation is always there.
    rows = rows[::-1][::step][::-1]
    return {name: [row.get(name) for row in rows] for name in columns}


def data_of(command: str) -> str:
    """Return the data of a `regard train` command, without its options."""
    words = command.removeprefix("regard train ")
    return _OPTIONS.split(words)[0].strip()


def overrides_of(command: str) -> list[str]:
    """Return the overrides of a command except the seed; of what is set twice, the last."""
    words = command.removeprefix("regard train ")[len(data_of(command)) :]
    found = {
        word.partition("=")[0]: word
        for word in _WORD.findall(words)
        if "=" in word and not word.startswith("seed=")
    }
    return list(found.values())


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
    rows = [*runs, *value.get("together", [])]
    metrics: dict[str, Row] = {}
    for row in rows:
        for name, score in row.get("test", {}).get("scores", {}).items():
            about = {key: score[key] for key in ("name", "signature") if key in score}
            for key in [
                key for key in about if metrics.setdefault(name, about).get(key) == about[key]
            ]:
                del score[key]
    common = {
        key: runs[0][key]
        for key in COMMON
        if len(runs) > 1 and key in runs[0] and all(run.get(key) == runs[0][key] for run in runs)
    }
    shared = [
        word
        for word in (runs[0].get("overrides", []) if len(runs) > 1 else [])
        if all(word in run.get("overrides", []) for run in runs)
    ]
    if shared:
        common["overrides"] = shared
    for run in runs:
        for key in common:
            run.pop(key, None) if key != "overrides" else None
        run["overrides"] = [word for word in run.get("overrides", []) if word not in shared]
        if not run["overrides"]:
            del run["overrides"]
        for name, groups in run.get("test", {}).items():
            if name.startswith("by_") and groups:  # columns take less space than rows
                run["test"][name] = {key: [one.get(key) for one in groups] for key in groups[0]}
    extra = {"common": common, "metrics": metrics, "runs": runs} if runs else {}
    write_text(path, _dump({**value, **extra}) + "\n")


def _dump(value: Any, indent: int = 0) -> str:
    """Return JSON with short values on one line."""
    line = json.dumps(value, ensure_ascii=False)
    items = list(value.values()) if isinstance(value, dict) else value
    is_flat = isinstance(value, list) and not any(isinstance(x, dict | list) for x in value)
    if not isinstance(value, dict | list) or is_flat or len(line) <= MAX_LINE or not items:
        return line
    parts = [_dump(item, indent + 1) for item in items]
    if isinstance(value, dict):
        parts = [
            f"{json.dumps(k, ensure_ascii=False)}: {p}" for k, p in zip(value, parts, strict=True)
        ]
    pad = " " * indent
    left, right = "{}" if isinstance(value, dict) else "[]"
    return f"{left}\n{pad} " + f",\n{pad} ".join(parts) + f"\n{pad}{right}"


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
