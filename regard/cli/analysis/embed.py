"""`regard embed`: one vector per source, from the encoder of any run."""

from pathlib import Path
from typing import Annotated

from typer import Option

from regard.cli.arguments import split_columns
from regard.cli.options import OUT, Columns, Device, Layer, OneRun, Pooling, Sources


def embed(
    run: OneRun,
    data: Sources,
    out: Annotated[Path, Option(*OUT, help="A file for the vectors: .npy or .safetensors.")],
    columns: Columns = None,
    layer: Layer = None,
    pooling: Pooling = None,
    device: Device = "auto",
) -> None:
    """Write the vectors of lines, images or recordings.

    The encoder computes one vector per source, in input order. Empty lines and files that cannot be
    read get a vector of zeros. A .safetensors file also holds the provenance.
    """
    from regard.interpret import embed as embedding
    from regard.runs.folder import load_one
    from regard.runs.provenance import describe_provenance
    from regard.tasks.reading import read_inputs_or_test_split, with_columns

    embedding.check_vector_file(out)
    task = load_one(run, device)
    recipe = with_columns(task.recipe, split_columns(columns), needs_target=False)
    sources = read_inputs_or_test_split(
        data, recipe, read_split=task.read_split, labels=task.label_names
    )
    vectors = embedding.embed(task, sources, layer=layer, pooling=pooling)
    options = {"layer": "last" if layer is None else layer, "pooling": pooling or "default"}
    provenance = {**describe_provenance(task.device), "run": run, "data": data, **options}
    embedding.save_vectors(out, vectors, provenance)
    print(f"{len(vectors):,} vectors of width {vectors.shape[1]:,}: {out}")
