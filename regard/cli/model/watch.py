"""`regard watch`: trainings in a browser while they run."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from regard.cli.completion import complete_run


def watch(
    runs: Annotated[
        list[Path],
        Argument(
            metavar="RUN...",
            help="Run folders, or folders of runs: all runs in them, also later ones.",
            autocompletion=complete_run,
            show_default=False,
        ),
    ],
    host: Annotated[str, Option(help="Address of the server; this machine only by default.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, Option(help="Port; 0 = any that is free.", min=0, max=65535)] = 8000,
    token_file: Annotated[
        Path | None, Option(metavar="FILE", help="A file with the token that requests must have.")
    ] = None,
    insecure: Annotated[
        bool, Option("--insecure", help="Allow other machines to use the server without a token.")
    ] = False,
) -> None:
    """Follow trainings in a browser: curves, samples and attention weights.

    Trainings may run, be finished or begin later. No model is loaded; `regard serve` also offers
    the trainings of its runs.
    """
    from regard.serve.packages import check_packages

    check_packages("watch")

    from regard.serve.server import ServeOptions, serve

    serve(
        ServeOptions(
            trainings=runs, host=host, port=port, token_file=token_file, is_insecure=insecure
        )
    )
