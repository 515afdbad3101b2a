"""`regard show`: attention and attribution over a sentence, an image or a recording."""

from dataclasses import replace
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
    by: Annotated[
        str,
        Option(
            metavar="METHODS",
            help="attention, gradients, integrated_gradients, erasure; or several: a,b.",
        ),
    ] = "attention",
    of: Annotated[
        str, Option(help="Attention: cross, or self-attention of the encoder or decoder.")
    ] = "cross",
    heads: Annotated[bool, Option("--heads", help="Plot each layer and head.")] = False,
    alternatives: Annotated[
        int | None, Option(metavar="K", help="Show the K most likely tokens at each position.")
    ] = None,
    beam: Beam = None,
    out: Plot = None,
    seed: SearchSeed = None,
    device: Device = "auto",
) -> None:
    """Plot attention weights, or what else explains a prediction.

    The source is a sentence, an image, a video or a recording. The weights are averaged over layers
    and heads, unless --heads is given. The plot is printed in the terminal or written to a file.
    For models that predict images, source, prediction and target are shown.
    With --by, other methods compute the contribution of each input to each token of the output:
    gradient × input, integrated gradients and erasure. Several are plotted side by side, and their
    faithfulness is measured.
    With --tree, all hypotheses that beam search kept or finished are shown, the best one on top.
    """
    from regard.interpret.attribution import check_methods
    from regard.interpret.visualize import visualize, visualize_attribution, visualize_tree
    from regard.plots.figure import check_path
    from regard.runs.folder import load
    from regard.tasks.search import override_task_search
    from regard.tasks.sources import check_text

    sources, overrides = split_search_arguments(arguments, max_paths=1, seed=seed)
    if not sources:
        raise ConfigError("No source was given. Name a sentence or a file beside the settings.")
    if out is not None:
        check_path(out, "--out")
    methods = by.split(",")
    check_methods(methods)
    is_attention = methods == ["attention"]
    if not is_attention and (heads or of != "cross"):
        raise ConfigError("`--heads` and `--of` are for attention alone. Leave out `--by`.")
    has_default_map = is_attention and of == "cross" and not heads
    if tree and not (has_default_map and target is None and alternatives is None):
        raise ConfigError(
            "`--tree` shows a search in place of a map. Leave out `--target`, `--alternatives`, "
            "`--by`, `--of` and `--heads`."
        )
    task = override_task_search(load(run, device), beams=beam, overrides=overrides)
    source = sources[0]
    check_text(source, task.recipe)
    if tree:
        plot = visualize_tree(task, source)
    elif is_attention:
        plot = visualize(
            task, source, target, part=of, has_heads=heads, num_alternatives=alternatives
        )
    else:
        plot = visualize_attribution(
            task, source, target, methods=methods, num_alternatives=alternatives
        )
    if plot.lines:
        print(*plot.lines, sep="\n")
    if out is None:
        plot.print(build_console())
    else:
        plot = replace(plot, facts={"run": run, **plot.facts})
        print(*plot.save(out), sep="\n")
