"""`regard serve`: predictions over HTTP."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from regard.cli.completion import complete_run
from regard.cli.options import Device


def serve(
    runs: Annotated[
        list[str],
        Argument(
            metavar="[NAME=]RUN...",
            help="Run folders. A name such as en-de states the languages of a translation model.",
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
    cors: Annotated[
        list[str] | None,
        Option(
            metavar="ORIGIN",
            help="Origin of pages that may use the server, such as https://example.org. May be "
            "repeated.",
        ),
    ] = None,
    max_batch: Annotated[
        int | None, Option(help="Sources in a batch; by the number of beams if not given.", min=1)
    ] = None,
    max_queue: Annotated[int, Option(help="Sources of a run that wait.")] = 1024,
    max_body: Annotated[int, Option(help="Bytes of a request.")] = 20_000_000,
    max_sentences: Annotated[int, Option(help="Sources of a request.")] = 128,
    max_characters: Annotated[int, Option(help="Characters of a source.")] = 5000,
    max_beams: Annotated[int, Option(help="Beams and predictions per source.")] = 16,
    max_pixels: Annotated[int, Option(help="Pixels of an image.")] = 20_000_000,
    max_audio: Annotated[float, Option(metavar="SECONDS", help="Length of a recording.")] = 60.0,
    max_seconds: Annotated[
        float, Option(metavar="SECONDS", help="Time until a request is answered.")
    ] = 60.0,
    max_connections: Annotated[int, Option(help="Connections at a time.", min=1)] = 4096,
    log_requests: Annotated[
        bool, Option("--log-requests", help="Log requests and warnings about their sources.")
    ] = False,
    open_page: Annotated[
        bool, Option("--open", help="Open the page in the browser, if there is a screen.")
    ] = False,
    device: Device = "auto",
) -> None:
    """Serve predictions of one or several runs over HTTP, and a page that shows the models at work.

    /translate is that of LibreTranslate; /v1/predict and others work for every model. /docs lists
    all routes. Requests that arrive together are computed together.
    Other machines can use the server if --host is not this machine; it then needs --token-file.
    Ctrl-C and SIGTERM end the server after the requests that it has accepted.
    """
    from regard.serve.packages import check_packages

    check_packages()

    from regard.serve.limits import Limits
    from regard.serve.server import ServeOptions
    from regard.serve.server import serve as serve_runs

    limits = Limits(
        body=max_body,
        bodies=max(max_body, Limits.bodies),
        sentences=max_sentences,
        characters=max_characters,
        beams=max_beams,
        pixels=max_pixels,
        audio=max_audio,
        seconds=max_seconds,
        queue=max_queue,
    )
    options = ServeOptions(
        runs=runs,
        host=host,
        port=port,
        token_file=token_file,
        is_insecure=insecure,
        origins=tuple(cors or ()),
        limits=limits,
        max_batch=max_batch,
        max_connections=max_connections,
        logs_requests=log_requests,
        opens_page=open_page,
        device=device,
    )
    serve_runs(options)
