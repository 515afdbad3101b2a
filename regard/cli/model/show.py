"""`regard show`: attention weights over a sentence, an image or a recording."""

from typing import Annotated

from typer import Argument, Option

from regard.cli.options import Device, Plot, Run


def show(
    run: Run,
    sentence: Annotated[
        str, Argument(help="A text; a file of an image, video or recording; or text, tab, image.")
    ],
    target: Annotated[str | None, Option(help="A target in place of the prediction.")] = None,
    out: Plot = None,
    device: Device = "auto",
) -> None:
    """Plot attention weights.

    The source is a sentence, an image, a video or a recording. The weights are averaged over layers
    and heads. The plot is printed in the terminal or written to a file. For models that predict
    images, source, prediction and target are shown.
    """
    from rich.console import Console

    from regard.interpret.visualize import visualize
    from regard.runs.folder import load

    plot = visualize(load(run, device), sentence, target)
    if plot.lines:
        print(*plot.lines, sep="\n")
    if out is None:
        plot.print(Console())
    else:
        print(*plot.save(out), sep="\n")
