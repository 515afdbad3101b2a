"""Very small sizes of the benchmark of training, one per kind of model."""

from regard.bench.sizes import TINY, Size

TRANSFORMER = TINY
RECURRENT = Size(
    "bahdanau2015",
    num_pairs=3,
    length=7,
    overrides=(
        *("model.encoder.embedding_dim=12", "model.encoder.dim=8"),
        *("model.decoder.embedding_dim=12", "model.decoder.dim=10"),
        "model.decoder.attention_dim=6",
    ),
    vocab_size=40,
)
CONVOLUTIONAL = Size(
    "gehring2017",
    num_pairs=3,
    length=7,
    overrides=tuple(
        f"model.{side}.{setting}"
        for side in ("encoder", "decoder")
        for setting in ("embedding_dim=8", "dim=12", "num_layers=2")
    ),
    vocab_size=40,
)
