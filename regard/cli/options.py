"""Arguments and options that several commands share."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

Run = Annotated[str, Argument(help="A run folder, or several joined by commas (an ensemble).")]
OneRun = Annotated[str, Argument(help="A run folder.")]
Device = Annotated[str, Option(help="auto, cpu or cuda.")]
Beam = Annotated[int | None, Option(help="Beams; 1 is greedy search.")]
Rerank = Annotated[
    str | None, Option(metavar="RUN", help="A run from targets to sources, to rerank.")
]
RerankWeight = Annotated[float | None, Option(help="Weight of --rerank; 0.5 if not given.")]
Data = Annotated[str, Argument(help="A data set's name or a file of pairs.")]
SecondData = Annotated[str | None, Argument(help="The target side, line by line.")]
DataAndOverrides = Annotated[
    list[str],
    Argument(
        metavar="DATA [DATA2] [section.key=value ...]",
        help="A data set's name, a file of pairs, or two line-aligned files; then overrides.",
    ),
]
Sources = Annotated[
    str,
    Argument(metavar="FILE|DATA", help="A file, - for standard input, or a data set (test part)."),
]
Valid = Annotated[list[str] | None, Option(help="Validation data; twice for line-aligned files.")]
Test = Annotated[list[str] | None, Option(help="Test data; twice for line-aligned files.")]
Columns = Annotated[
    str | None, Option(help="Columns of a file: source,source,target,- or titles, the target last.")
]
OnError = Annotated[
    str | None, Option(metavar="stop|skip", help="For lines without a pair; stop if not given.")
]
SearchOverrides = Annotated[
    list[str] | None, Argument(metavar="[search.key=value ...]", help="Search settings.")
]
Layer = Annotated[int | None, Option(help="A layer, 0 = embeddings; the last if not given.")]
Pooling = Annotated[str | None, Option(help="summary, mean or first; summary if not given.")]
Plot = Annotated[Path | None, Option(help="A file to plot to: .png, .svg or .html.")]
RunFolder = Annotated[Path | None, Option(help="The run folder; a folder in runs/ if not given.")]
RunFolders = Annotated[Path, Option(help="A folder for the run folders.")]
Json = Annotated[bool, Option("--json", help="Print everything as JSON.")]
Force = Annotated[bool, Option("--force", help="Replace the model in --out.")]
