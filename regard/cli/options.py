"""Arguments and options that several commands share, each defined once."""

import logging
from pathlib import Path
from typing import Annotated

from typer import Argument, Context, Option

from regard.cli.completion import (
    complete_data,
    complete_data_and_search,
    complete_data_and_settings,
    complete_recipe,
    complete_run,
    complete_search,
    complete_settings,
)
from regard.core.logging import logger

OUT = ("--out", "-o")
"""Names of the option for the file or folder that a command writes."""


def set_threads(ctx: Context, num: int | None) -> None:
    """Set the number of threads before a command starts."""
    if num is not None and not ctx.resilient_parsing:
        from regard.core import device

        device.set_threads(num)


def set_quiet(ctx: Context, is_quiet: bool) -> None:
    """Log warnings and errors only, before a command starts."""
    if is_quiet and not ctx.resilient_parsing:
        logger.setLevel(max(logger.level, logging.WARNING))


# Options that `regard.cli.commands` adds to commands.
Quiet = Annotated[
    bool,
    Option(
        "--quiet",
        "-q",
        callback=set_quiet,
        expose_value=False,
        help="Print no notices and no progress.",
    ),
]
Threads = Annotated[
    int | None,
    Option(
        "--threads",
        callback=set_threads,
        expose_value=False,
        help="Threads of the CPU; torch's default if not given.",
    ),
]

# Options with one meaning in all commands.
Device = Annotated[str, Option("--device", help="auto, cpu, cuda, cuda:1, mps or xpu.")]
Seed = Annotated[int, Option("--seed", help="Seed of random numbers.")]
SearchSeed = Annotated[
    int | None, Option("--seed", help="Seed of sampled predictions, as search.seed.")
]
RecipeSeed = Annotated[
    int | None, Option("--seed", help="Seed of weights, data order and dropout.")
]
Json = Annotated[bool, Option("--json", help="Print everything as JSON.")]
JsonLines = Annotated[bool, Option("--json", help="Print one JSON object per line.")]
Columns = Annotated[
    str | None,
    Option(
        "--columns", help="Columns of a file: source,source,target,- or titles, the target last."
    ),
]
OnError = Annotated[
    str | None,
    Option(
        "--on-error",
        metavar="stop|skip",
        help="For lines without a pair, and many files that need a package; stop if not given.",
    ),
]
Force = Annotated[bool, Option("--force", help="Replace the model in --out.")]

# What --out names.
OutFile = Annotated[
    Path | None, Option(*OUT, help="A file for the output; standard output if not given.")
]
Plot = Annotated[Path | None, Option(*OUT, help="A file to plot to: .png, .svg, .pdf or .html.")]
RunFolder = Annotated[
    Path | None, Option(*OUT, help="The run folder; a folder in runs/ if not given.")
]
RunFolders = Annotated[Path, Option(*OUT, help="A folder for the run folders.")]

# Search.
Beam = Annotated[int | None, Option("--beam", help="Beams, as search.beams; 1 is greedy search.")]
Rerank = Annotated[
    str | None,
    Option(
        metavar="RUN",
        help="A run from targets to sources, to rerank.",
        autocompletion=complete_run,
    ),
]
RerankWeight = Annotated[float | None, Option(help="Weight of --rerank; 0.5 if not given.")]

# Runs.
Run = Annotated[
    str,
    Argument(
        metavar="RUN",
        help="A run folder, or several joined by commas (an ensemble).",
        autocompletion=complete_run,
    ),
]
OneRun = Annotated[str, Argument(metavar="RUN", help="A run folder.", autocompletion=complete_run)]

# Data and overrides.
Data = Annotated[
    str,
    Argument(
        metavar="DATA", help="A data set's name or a file of pairs.", autocompletion=complete_data
    ),
]
SecondData = Annotated[
    str | None, Argument(metavar="[DATA2]", help="The target side, line by line.")
]
DataAndOverrides = Annotated[
    list[str],
    Argument(
        metavar="DATA [DATA2] [section.key=value ...]",
        help="A data set's name, a file of pairs, or two line-aligned files; and overrides.",
        autocompletion=complete_data_and_settings,
    ),
]
TestData = Annotated[
    list[str] | None,
    Argument(
        metavar="[DATA] [DATA2]",
        help="A data set's name (test part), a file of pairs, or two line-aligned files; "
        "the run's own test set if not given.",
        autocompletion=complete_data,
    ),
]
TestDataAndOverrides = Annotated[
    list[str] | None,
    Argument(
        metavar="[DATA] [DATA2] [search.key=value ...]",
        help="A data set's name (test part), a file of pairs, or two line-aligned files; "
        "the run's own test set if not given. And search settings.",
        autocompletion=complete_data_and_search,
    ),
]
Sources = Annotated[
    str,
    Argument(
        metavar="FILE|DATA",
        help="A file, - for standard input, or a data set (test part).",
        autocompletion=complete_data,
    ),
]
Valid = Annotated[
    list[str] | None,
    Option(
        metavar="DATA",
        help="Validation data; twice for line-aligned files.",
        autocompletion=complete_data,
    ),
]
Test = Annotated[
    list[str] | None,
    Option(
        metavar="DATA",
        help="Test data; twice for line-aligned files.",
        autocompletion=complete_data,
    ),
]
SearchOverrides = Annotated[
    list[str] | None,
    Argument(
        metavar="[search.key=value ...]", help="Search settings.", autocompletion=complete_search
    ),
]
Recipe = Annotated[
    str | None,
    Option(
        help="A recipe's name or a TOML file; chosen by the data if not given.",
        autocompletion=complete_recipe,
    ),
]
RecipeName = Annotated[
    str,
    Argument(
        metavar="RECIPE",
        help="A recipe's name, a TOML file or a run folder.",
        autocompletion=complete_recipe,
    ),
]
RecipeOverrides = Annotated[
    list[str] | None,
    Argument(
        metavar="[section.key=value ...]", help="Overrides.", autocompletion=complete_settings
    ),
]

# Vectors.
Layer = Annotated[int | None, Option(help="A layer, 0 = embeddings; the last if not given.")]
Pooling = Annotated[str | None, Option(help="summary, mean, first or final; summary if not given.")]
