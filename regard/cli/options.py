"""What several verbs take: arguments and options with one meaning each."""

from pathlib import Path
from typing import Annotated

import typer

Run = Annotated[
    str, typer.Argument(help="A run folder, or several joined by commas that answer together.")
]
OneRun = Annotated[str, typer.Argument(help="A run folder.")]
Device = Annotated[str, typer.Option(help="auto, cpu or cuda.")]
Rerank = Annotated[
    str | None,
    typer.Option(
        metavar="RUN", help="A run that tells sources from answers: answers it understands win."
    ),
]
RerankWeight = Annotated[
    float | None, typer.Option(help="What the --rerank run counts; 0.5 if not given.")
]
Data = Annotated[str, typer.Argument(help="A data set's name or a file of pairs.")]
SecondData = Annotated[str | None, typer.Argument(help="The target side, line by line.")]
DataAndSettings = Annotated[
    list[str],
    typer.Argument(
        metavar="DATA [DATA2] [section.key=value ...]",
        help="A data set's name, a file of pairs, or two line-aligned files; then settings.",
    ),
]
Valid = Annotated[
    list[str] | None,
    typer.Option(help="Validation data; give it twice for two line-aligned files."),
]
Test = Annotated[
    list[str] | None,
    typer.Option(help="Test data; give it twice for two line-aligned files."),
]
Columns = Annotated[
    str | None,
    typer.Option(help="What stands in the columns of a file, such as source,source,target,-."),
]
SearchWords = Annotated[
    list[str] | None,
    typer.Argument(metavar="[search.key=value ...]", help="Settings of the search."),
]
Picture = Annotated[Path | None, typer.Option(help="Where images go: a file, .png, .svg or .html.")]
