"""`regard embed`: one vector a line, from the encoder of any run."""

from pathlib import Path
from typing import Annotated

import typer

from regard.cli.options import Device, OneRun

Listed = Annotated[
    str,
    typer.Argument(
        metavar="FILE|DATA",
        help="A file, or - for standard input; or a data set's name for its test part.",
    ),
]
Layer = Annotated[
    int | None,
    typer.Option(help="Which layer, 0 being the embeddings; what the encoder ends in without it."),
]
Pooling = Annotated[
    str | None,
    typer.Option(help="summary, mean or first; the encoder's own summary without it."),
]


def embed(
    run: OneRun,
    data: Listed,
    out: Annotated[Path, typer.Option(help="Where they go: a file .npy or .safetensors.")],
    layer: Layer = None,
    pooling: Pooling = None,
    device: Device = "auto",
) -> None:
    """Write the vectors that an encoder makes of lines, images or recordings, order kept.

    An empty line has a vector of zeros, and so has an image or the like that cannot be read among
    others. A .safetensors file also says how they were made.
    """
    from regard.interpret.embed import embed as make
    from regard.interpret.vector_files import check_vector_file, save_vectors
    from regard.runs.folder import describe_making, load_one
    from regard.tasks.reading import read_listed

    check_vector_file(out)
    task = load_one(run, device)
    sources = read_listed(data, task.recipe, read_side=task.read_side)
    vectors = make(task, sources, layer=layer, pooling=pooling)
    making = describe_making(task.device) | {"run": run, "data": data}
    making |= {"layer": "last" if layer is None else layer, "pooling": pooling or "default"}
    save_vectors(out, vectors, making)
    print(f"{len(vectors):,} vectors of width {vectors.shape[1]:,}: {out}")
