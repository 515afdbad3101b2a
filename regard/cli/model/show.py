"""`regard show`: attention weights over a sentence, an image or a recording."""

from typing import Annotated

from typer import Argument, Option

from regard.cli.arguments import split_search_arguments
from regard.cli.completion import complete_search
from regard.cli.options import Beam, Device, Plot, Run, SearchSeed
from regard.cli.output import build_console
from regard.core.errors import ConfigError


def show(
    run: Run,
    arguments: Annotated[
        list[str],
        Argument(
            metavar="SOURCE [search.key=value ...]",
            help="A text; a file of an image, video or recording; or text, tab, image. "
            "And search settings.",
            autocompletion=complete_search,
        ),
    ],
    target: Annotated[str | None, Option(help="A target in place of the prediction.")] = None,
    tree: Annotated[
        bool, Option("--tree", help="Plot the beam tree in place of attention weights.")
    ] = False,
    beam: Beam = None,
    out: Plot = None,
    seed: SearchSeed = None,
    device: Device = "auto",
) -> None:
    """Plot attention weights.

    The source is a sentence, an image, a video or a recording. The weights are averaged over layers
    and heads. The plot is printed in the terminal or written to a file. For models that predict
    images, source, prediction and target are shown.
    With --tree, all hypotheses that beam search kept or finished are shown, the best one on top.
    """
    from regard.interpret.visualize import visualize, visualize_tree
    from regard.plots.figure import check_path
    from regard.runs.folder import load
    from regard.tasks.search import override_task_search
    from regard.tasks.sources import check_text

    sources, overrides = split_search_arguments(arguments, max_paths=1, seed=seed)
    if not sources:
        raise ConfigError("No source was given. Name a sentence or a file beside the settings.")
    if out is not None:
        check_path(out, "--out")
    task = override_task_search(load(run, device), beams=beam, overrides=overrides)
    check_text(sources[0], task.recipe)
    if tree and target is not None:
        raise ConfigError("`--tree` shows a search, which `--target` replaces. Leave one out.")
    plot = visualize_tree(task, sources[0]) if tree else visualize(task, sources[0], target)
    if plot.lines:
        print(*plot.lines, sep="\n")
    if out is None:
        plot.print(build_console())
    else:
        print(*plot.save(out), sep="\n")
