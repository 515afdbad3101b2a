"""Catalogue of the experiments, read from one TOML file per chapter."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

CHAPTERS: dict[str, str] = {
    "neurons": "Before sequences",
    "learning": "Learning",
    "encoder_decoders": "Sequences and encoder–decoders",
    "attention": "Attention",
    "transformers": "Self-attention and Transformers",
    "applications": "Models and applications",
}
"""Titles of the chapters by package, in the order of the lectures."""

FILE = "experiments.toml"


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """Description of one experiment."""

    name: str
    chapter: str
    """Package of the experiment, a key of `CHAPTERS`."""
    title: str
    summary: str
    """One line for the list of experiments."""
    description: str
    """Procedure, data, and the meaning of the numbers."""
    topics: tuple[str, ...]
    """Numbers of the topics in docs/lectures.md."""
    seconds: float
    """Measured time on two cores, rounded."""
    function: str
    """Import path of the function of seed and folder that runs the experiment."""


@cache
def experiments() -> Mapping[str, Experiment]:
    """Return all experiments by name, in the order of the lectures."""
    return {
        name: _build(name, chapter, dict(table))
        for chapter in CHAPTERS
        for name, table in _read(chapter).items()
    }


def _read(chapter: str) -> Mapping[str, Mapping[str, object]]:
    path = Path(__file__).parent / chapter / FILE
    return tomllib.loads(path.read_text(encoding="utf-8"))


def _build(name: str, chapter: str, table: dict[str, object]) -> Experiment:
    function = f"{__package__}.{chapter}.{table.pop('function')}"
    topics = table.pop("topics")
    assert isinstance(topics, list)
    texts = {key: " ".join(str(table.pop(key)).split()) for key in _TEXTS}
    seconds = table.pop("seconds")
    assert isinstance(seconds, int | float) and not table, f"{name}: {table}"
    return Experiment(
        name=name,
        chapter=chapter,
        topics=tuple(topics),
        seconds=seconds,
        function=function,
        **texts,
    )


_TEXTS = ("title", "summary", "description")
