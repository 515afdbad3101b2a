"""List of the built-in recipes: model, data, size, score and time, from their headers."""

import re
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from regard.core.config import read_toml
from regard.core.files import read_json
from regard.core.tables import pick
from regard.runs.recipes import recipe_names, recipe_path
from regard.tasks.table import TASKS

PARAMETERS = "parameters.json"
"""File beside the recipes with the number of parameters of their models."""

APPLICATIONS = {
    "captioning": "generation",
    "dialogue": "generation",
    "entailment": "classification",
    "pronunciation": "generation",
    "question_answering": "generation",
    "sentiment": "classification",
    "speech": "generation",
    "speech_recognition": "generation",
    "summarisation": "generation",
    "summarization": "generation",
    "translation": "generation",
    "transliteration": "generation",
}
"""Tasks by the names of their applications, such as translation, in `list_recipes`."""

_PAPER = re.compile(r'^(?:(?! after )[^":]){1,40} \d{4}, "[^"]*"(?: \([^)]*\))?: (?:an? (?!few))?')
_SENTENCE_END = re.compile(r"(?<!\bal)(?<!\b[A-Z])\. (?=[A-Z])|\.$")
_NOT_MEASURED = re.compile(r"[Nn]ot (?:measured yet|run here)")
_SCORE = re.compile(
    r"(?:PSNR|perplexity|ELBO|mean IoU) of -?[\d.]*\d(?: dB)?"
    r"|(?:BLEU-\d|ROUGE-\w|chrF)(?:, -2, -L of)? [\d.]*\d"
    r"|[\d.]*\d (?:(?:BLEU|% accuracy)(?: on (?:SST-2|Multi30k))?|nats|% exact|% word error|%)"
)
_TIME = re.compile(
    r"(?P<number>[\d.]+|an?|two|three|four|five|ten) (?P<unit>minute|second|s\b)\w*(?: each)? on "
    r"(?:(?P<cores>\d+|an?|one)(?: \w+)? (?:CPU )?cores?|(?:an?|one)(?: shared)? (?P<gpu>[A-Z]\d+))"
)
_NUMBERS = {"a": "1", "an": "1", "one": "1", "two": "2", "three": "3", "four": "4", "five": "5"}


@dataclass(frozen=True)
class RecipeSummary:
    """One line about a recipe; an empty text is not known."""

    name: str
    task: str
    model: str
    """First sentence of the description, without the paper."""
    data: str
    """Data of the command that trains it."""
    parameters: int
    """Number of parameters with the vocabularies of this data set; 0 = not known."""
    score: str
    time: str


def list_recipes(task: str = "") -> list[RecipeSummary]:
    """Return the built-in recipes of a task, or all of them, by task and name.

    Args:
        task: Name of a task, or of an application of one such as `translation`; all if empty.
    """
    task = APPLICATIONS.get(re.sub(r"[ -]", "_", task.lower()), task)
    if task:
        pick(TASKS, task, "task")
    parameters = read_json(_folder() / PARAMETERS)
    found = [_summarise(name, parameters.get(name, 0)) for name in recipe_names()]
    order = list(TASKS)
    chosen = [one for one in found if not task or one.task == task]
    return sorted(chosen, key=lambda one: (order.index(one.task), one.name))


def _folder() -> Path:
    return recipe_path(recipe_names()[0]).parent


def _summarise(name: str, parameters: int) -> RecipeSummary:
    about, commands, results = _read_header(name)
    data = re.search(rf"regard train (\S+) --recipe {name}\b", commands)
    score = None if _NOT_MEASURED.search(results) else _SCORE.search(results)
    return RecipeSummary(
        name=name,
        task=str(read_toml(recipe_path(name)).get("task", "generation")),
        model=_model(about),
        data=data[1] if data else "",
        parameters=parameters,
        score=_shorten(score[0]) if score else "",
        time=_time(results) if score else "",
    )


def _read_header(name: str) -> tuple[str, str, str]:
    """Return the three parts of a header: description, commands, results."""
    text = recipe_path(name).read_text(encoding="utf-8")
    lines = list(takewhile(lambda line: line.startswith("#"), text.splitlines()))
    about = list(takewhile(lambda line: not line.startswith("#   "), lines))
    commands = [line for line in lines if line.startswith("#   ")]
    results = [line for line in lines[len(about) :] if not line.startswith("#   ")]
    about, commands, results = (
        [line.removeprefix("#").strip() for line in part] for part in (about, commands, results)
    )
    return " ".join(about), " ".join(commands), " ".join(results)


def _model(about: str) -> str:
    """Return the first sentence of a description, without the paper."""
    return _PAPER.sub("", _SENTENCE_END.split(about)[0])


def _shorten(score: str) -> str:
    score = re.sub(r"(?:, -2, -L)? of ", " ", score).replace("word error", "word errors")
    return score.replace(" accuracy on ", " on ")


def _time(results: str) -> str:
    """Return the first training time of the results, such as `4 min, H200`."""
    found = _TIME.search(results)
    if not found:
        return ""
    number = _NUMBERS.get(found["number"], found["number"])
    unit = "min" if found["unit"] == "minute" else "s"
    if found["gpu"]:
        return f"{number} {unit}, {found['gpu']}"
    cores = _NUMBERS.get(found["cores"], found["cores"])
    return f"{number} {unit}, {cores} core{'' if cores == '1' else 's'}"
