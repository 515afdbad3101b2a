"""Train, inspect and compare encoder-decoder models with attention.

import regard

trained = regard.train(regard.Request(data="pairs.tsv", out="runs/mine"))
translator = regard.load("runs/mine")
translator.translate("I would like to learn German.")
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from regard.core.threads import set_environment

__version__ = "0.2.0"

set_environment()

if TYPE_CHECKING:
    from regard.attention.recording import record as record
    from regard.core.errors import RegardError as RegardError
    from regard.data.example import Example as Example
    from regard.data.text.readers import read_examples as read_examples
    from regard.runs.folder import load as load
    from regard.runs.folder import predict as predict
    from regard.runs.recipes import load_recipe as load_recipe
    from regard.runs.request import Request as Request
    from regard.runs.train import train as train
    from regard.search.settings import SearchConfig as SearchConfig
    from regard.tasks.generation.evaluation import evaluate as evaluate
    from regard.tasks.generation.recipe import Recipe as Recipe
    from regard.tasks.generation.task import Predictor as Predictor
    from regard.training.loggers.logger import Logger as Logger

_MODULES = {
    "Example": "regard.data.example",
    "Logger": "regard.training.loggers.logger",
    "Predictor": "regard.tasks.generation.task",
    "Recipe": "regard.tasks.generation.recipe",
    "RegardError": "regard.core.errors",
    "Request": "regard.runs.request",
    "SearchConfig": "regard.search.settings",
    "evaluate": "regard.tasks.generation.evaluation",
    "load": "regard.runs.folder",
    "load_recipe": "regard.runs.recipes",
    "predict": "regard.runs.folder",
    "read_examples": "regard.data.text.readers",
    "record": "regard.attention.recording",
    "train": "regard.runs.train",
}
__all__ = sorted(_MODULES)


def __getattr__(name: str) -> Any:
    """Import a name on first use, so that `import regard` is fast."""
    if name not in _MODULES:
        raise AttributeError(f"module 'regard' has no attribute '{name}'")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
