"""`regard show`: where the model looks while it answers, in a sentence, an image or a recording."""

from typing import Annotated

from typer import Argument, Option

from regard.cli.options import Device, Plot, Run


def show(
    run: Run,
    sentence: Annotated[
        str, Argument(help="A text; a file of an image, video or recording; or text TAB image.")
    ],
    target: Annotated[str | None, Option(help="A target in place of the prediction.")] = None,
    out: Plot = None,
    device: Device = "auto",
) -> None:
    """Draw where the model looks in a sentence, an image or sound, in the terminal or a file.

    Of a model that answers with an image, what it read, what it drew and what is right are shown.
    """
    from rich.console import Console

    from regard.interpret.visualize import visualize
    from regard.runs.folder import load

    found = visualize(load(run, device), sentence, target)
    if found.lines:
        print(*found.lines, sep="\n")
    if out is None:
        found.print(Console())
    else:
        print(*found.save(out), sep="\n")
