"""`regard embed`: one vector a line, from the encoder of any run."""

from pathlib import Path
from typing import Annotated

from typer import Option

from regard.cli.options import Device, Layer, OneRun, Pooling, Sources


def embed(
    run: OneRun,
    data: Sources,
    out: Annotated[Path, Option(help="A file for the vectors: .npy or .safetensors.")],
    layer: Layer = None,
    pooling: Pooling = None,
    device: Device = "auto",
) -> None:
    """Write the vectors that an encoder makes of lines, images or recordings, order kept.

    An empty line has a vector of zeros, and so has an image or the like that cannot be read among
    others. A .safetensors file also says how they were made.
    """
    from regard.interpret.embed import check_vector_file, save_vectors
    from regard.interpret.embed import embed as compute
    from regard.runs.folder import describe_provenance, load_one
    from regard.tasks.reading import read_listed

    check_vector_file(out)
    task = load_one(run, device)
    sources = read_listed(data, task.recipe, read_side=task.read_side)
    vectors = compute(task, sources, layer=layer, pooling=pooling)
    how = {"layer": "last" if layer is None else layer, "pooling": pooling or "default"}
    save_vectors(
        out, vectors, {**describe_provenance(task.device), "run": run, "data": data, **how}
    )
    print(f"{len(vectors):,} vectors of width {vectors.shape[1]:,}: {out}")
