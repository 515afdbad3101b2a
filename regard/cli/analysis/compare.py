"""`regard compare`: compare runs on one test set, with significance tests."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from regard.cli.arguments import is_override
from regard.cli.completion import complete_run
from regard.cli.options import OUT, Device, Json
from regard.cli.output import build_console, print_json
from regard.core.errors import ConfigError

if TYPE_CHECKING:
    from regard.studies.compare.comparison import Comparison


def compare(
    run: Annotated[
        list[str],
        Argument(
            metavar="RUN RUN...",
            help="Run folders; the first is the baseline.",
            autocompletion=complete_run,
        ),
    ],
    as_json: Json = False,
    out: Annotated[
        list[Path] | None,
        Option(
            *OUT,
            "--html",
            help="A file for tables and plots (.html) or for all numbers (.json); twice for both.",
        ),
    ] = None,
    device: Device = "auto",
) -> None:
    """Compare runs on their common test set, each with the first.

    Outputs are those that training saved in the run folders.
    """
    from regard.core.files import check_suffix
    from regard.studies.compare import comparison

    for file in out or ():
        check_suffix(file, "--out", ".html", ".json")
    for argument in filter(is_override, run):
        raise ConfigError(
            f"`regard compare` uses the saved predictions of runs, so '{argument}' has no effect. "
            f"Leave it out; `regard evaluate RUN {argument}` predicts again."
        )
    folders = [Path(folder) for folder in run]
    report(comparison.compare(folders, device=device), files=out or (), as_json=as_json)


def report(comparison: "Comparison", *, files: Sequence[Path], as_json: bool) -> None:
    """Print a comparison, and write it to files.

    Args:
        comparison: The comparison.
        files: Files to write: `.json` for all numbers, any other for the page.
        as_json: Whether to print JSON in place of tables.
    """
    from regard.core.files import write_json, write_text
    from regard.studies.compare.rendering import comparison_page, print_comparison

    for file in files:
        if file.suffix.lower() == ".json":
            write_json(file, comparison.to_dict())
        else:
            write_text(file, comparison_page(comparison))
    if as_json:
        print_json(comparison.to_dict())
        return
    print_comparison(comparison, build_console())
    for file in files:
        print(file)
