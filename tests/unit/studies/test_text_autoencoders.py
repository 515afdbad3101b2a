"""Studies of text autoencoders: dimensionality reduction, anomalies, fine-tuning."""

import numpy as np
import pytest
import torch

from regard.core.errors import ConfigError
from regard.data.example import Example
from regard.runs.recipes import load_recipe
from regard.runs.request import Request
from regard.runs.train import train
from regard.studies.anomalies import detect_anomalies
from regard.studies.autoencoder import AutoencoderRun
from regard.studies.compression.codec import Compressor
from regard.studies.reduction import reduce
from regard.tasks.classification.task import ClassificationTask

TINY = (
    "model.encoder.encoder.embedding_dim=8",
    "model.encoder.encoder.dim=8",
    "model.encoder.bottleneck.dim=4",
    "model.decoder.embedding_dim=8",
    "model.decoder.dim=8",
    "train.max_epochs=0",
    "train.max_steps=2",
    "train.validate_every=2",
)


def write(path, nouns):
    lines = [
        f"{first} {noun} {verb}s {adverb} .\t{noun}\n"
        for first in ("the", "a", "my")
        for noun in nouns
        for verb in ("run", "sing", "sleep")
        for adverb in ("here", "in the sun", "all day long")
    ]
    path.write_text("".join(lines), encoding="utf-8")
    return str(path)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("text")
    return write(folder / "pets.tsv", ("cat", "dog")), write(folder / "tools.tsv", ("saw", "axe"))


@pytest.fixture(scope="module")
def autoencoder(files, tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "run"
    recipe = "dai2015-autoencoder-laptop"
    train(Request(data=files[:1], recipe=recipe, settings=TINY, out=out, device="cpu"))
    return AutoencoderRun(out, "cpu")


def test_vectors_are_token_counts_of_unit_length(autoencoder):
    vectors = autoencoder.vectors(["the cat runs here .", "the the the the"])
    assert torch.allclose(vectors.norm(dim=-1), torch.ones(2))
    tokenizer = autoencoder.task.source.tokenizer
    (the,) = tokenizer.encode("the")
    # Four times "the" and the end token.
    assert float(vectors[1, the]) == pytest.approx(4 / np.sqrt(17))


def test_projections_of_sentences_have_no_image_error(autoencoder, files):
    result = reduce(autoencoder, files[0], num_bootstrap=0)
    latents, pca = result.projections.values()
    assert (latents.points.shape, pca.points.shape) == ((54, 2), (54, 2))
    assert latents.error is None and pca.error is None
    assert set(result.labels) == {"cat", "dog"}
    assert result.plot().axes


def test_error_of_a_sentence_is_its_negative_log_likelihood_per_token(autoencoder, files):
    text = "my dog sings here ."
    (scored,) = autoencoder.task.score([Example(text, text)])
    expected = -sum(scored.token_log_probs) / len(scored.tokens)
    assert autoencoder.reconstruction_errors([text])[0] == pytest.approx(expected, rel=1e-5)
    assert detect_anomalies(autoencoder, *files).unit == "nats per token"


def test_sentences_cannot_be_compressed(autoencoder):
    with pytest.raises(ConfigError, match="Only integer codes can be compressed"):
        Compressor(autoencoder)


def test_classifier_is_initialised_with_the_encoder(autoencoder):
    examples = [Example("the cat runs here .", "cat"), Example("my dog sings here .", "dog")]
    recipe = load_recipe("sst2-lstm", ())
    classifier = ClassificationTask.prepare(
        recipe, examples, device=torch.device("cpu"), init_from=autoencoder.task
    )
    assert classifier.recipe.model.encoder == autoencoder.task.recipe.model.encoder.encoder
    weights = autoencoder.task.model.encoder.encoder.state_dict()
    for name, tensor in classifier.model.encoder.state_dict().items():
        assert torch.equal(tensor, weights[name])
