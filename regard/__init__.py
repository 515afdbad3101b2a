"""Sequence-to-sequence learning with attention: train on your own pairs, see it think, ship it.

import regard

trained = regard.train(regard.Request(data=("pairs.tsv",), out=Path("runs/mine")))
translator = regard.load("runs/mine")
translator.translate(["I would like to learn German."])
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from regard.attention.recording import record as record
    from regard.core.errors import RegardError as RegardError
    from regard.data.example import Example as Example
    from regard.data.text.readers import read_examples as read_examples
    from regard.search.settings import SearchConfig as SearchConfig
    from regard.tasks.cookbook import load_recipe as load_recipe
    from regard.tasks.evaluation import evaluate as evaluate
    from regard.tasks.learning import train as train
    from regard.tasks.predictor import Predictor as Predictor
    from regard.tasks.recipe import Recipe as Recipe
    from regard.tasks.request import Request as Request
    from regard.tasks.runs import load as load
    from regard.tasks.runs import predict as predict

_HOMES = {
    "Example": "regard.data.example",
    "Predictor": "regard.tasks.predictor",
    "Recipe": "regard.tasks.recipe",
    "RegardError": "regard.core.errors",
    "Request": "regard.tasks.request",
    "SearchConfig": "regard.search.settings",
    "evaluate": "regard.tasks.evaluation",
    "load": "regard.tasks.runs",
    "load_recipe": "regard.tasks.cookbook",
    "predict": "regard.tasks.runs",
    "read_examples": "regard.data.text.readers",
    "record": "regard.attention.recording",
    "train": "regard.tasks.learning",
}
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    """Load a name on first use, so that `import regard` costs nothing."""
    if name not in _HOMES:
        raise AttributeError(f"module 'regard' has no attribute '{name}'")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
