"""TensorBoard logger: event files of scalars by step."""

from importlib import import_module
from pathlib import Path
from typing import Any

from regard.core.errors import ConfigError
from regard.training.loggers.logger import Logger, scalars
from regard.training.plan import Plan, Row

FLUSH_SECONDS = 10
"""Time after which events are written to the file, so that TensorBoard shows a running training."""


class TensorBoardLogger(Logger):
    """Logger that writes the numbers of all events for TensorBoard.

    Args:
        folder: Folder of the event files. A resumed run adds a file, which hides the later steps of
            the files before it.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._module = _import_tensorboard()

    def start(self, plan: Plan) -> None:
        """Open an event file."""
        self._writer: Any = self._module.SummaryWriter(
            str(self._folder), purge_step=plan.step + 1, flush_secs=FLUSH_SECONDS
        )

    def write(self, row: Row) -> None:
        """Write the numbers of an event."""
        for name, value in scalars(row).items():
            self._writer.add_scalar(name, value, row["step"])

    def close(self) -> None:
        """Close the event file."""
        self._writer.close()


def _import_tensorboard() -> Any:
    """Import the module of torch that needs the package; raise `ConfigError` if it is missing."""
    try:
        return import_module("torch.utils.tensorboard")
    except ImportError as error:
        raise ConfigError(
            f"`--tensorboard` needs the package tensorboard ({error}). Install it: "
            "`pip install 'regard[board]'`."
        ) from None
