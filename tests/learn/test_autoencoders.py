"""Text autoencoders: reconstruction, denoising and sampling of sentences."""

import re

import pytest

from regard.data.datasets.labelled import generate_opinions
from regard.runs.request import Request
from regard.runs.train import train
from regard.tasks.latents import sample_latents

pytestmark = pytest.mark.learn

CLAUSE = (
    r"the (film|story|cast|music|script|ending|camera|plot|dialogue) (is|was|seems|is not) "
    r"((very|quite|truly|rather) )?(brilliant|touching|clever|funny|superb|charming|moving|fresh|"
    r"dull|tedious|clumsy|silly|awful|boring|shallow|stale)"
)
OPINION = re.compile(rf"(i \w+ |to be honest , |well , )?{CLAUSE}( , but {CLAUSE})?")
"""Sentences of the grammar of opinions."""


@pytest.fixture
def learn_opinions(tmp_path):
    def learn(recipe):
        return train(Request(data=("opinions",), recipe=recipe, out=tmp_path / "run", device="cpu"))

    return learn


@pytest.mark.quick
def test_sequence_autoencoder_reconstructs_sentences(learn_opinions, value):
    trained = learn_opinions("dai2015-autoencoder-laptop")
    assert value(trained, "accuracy") >= 90
    assert value(trained, "token_accuracy") >= 99


def test_denoising_autoencoder_restores_corrupted_sentences(learn_opinions, value):
    trained = learn_opinions("hill2016-laptop")
    assert value(trained, "accuracy") >= 80
    assert value(trained, "restored_bleu") >= value(trained, "corrupted_bleu") + 12


def test_variational_autoencoder_uses_its_latent_and_samples_sentences(learn_opinions, value):
    trained = learn_opinions("bowman2016-laptop")
    assert value(trained, "kl") >= 4
    assert value(trained, "active_units") >= 8
    assert value(trained, "bleu") >= 25
    sentences = trained.predictor.decode(sample_latents(trained.predictor, 200))
    well_formed = [bool(OPINION.fullmatch(sentence)) for sentence in sentences]
    assert sum(well_formed) >= 180
    # The samples are diverse and not memorised.
    assert len({*sentences}) >= 100
    known = {example.source for example in generate_opinions(5_000)}
    assert sum(sentence in known for sentence in sentences) <= 60
