import pytest
import torch

from regard.data.audio.field import AudioConfig
from regard.data.datasets.catalog import find_data
from regard.models.classifier import ClassifierConfig
from regard.models.encoders.pyramidal_lstm import PyramidalLstmEncoderConfig
from regard.tasks.attention_plots import spectrogram_of
from regard.tasks.classification.recipe import ClassificationDataConfig, ClassificationRecipe
from regard.tasks.classification.task import ClassificationTask

EXAMPLES = find_data("tones:single,20").train


@pytest.fixture(scope="module", params=["mean", "summary", "attention"])
def task(request):
    recipe = ClassificationRecipe(
        data=ClassificationDataConfig(source=AudioConfig(num_mels=12)),
        model=ClassifierConfig(
            encoder=PyramidalLstmEncoderConfig(dim=5, num_layers=2), pooling=request.param
        ),
    )
    return ClassificationTask.prepare(recipe, EXAMPLES, device=torch.device("cpu"))


def test_weights_are_per_frame_and_sum_to_one(task):
    for example, found in zip(EXAMPLES, task.attend(EXAMPLES), strict=True):
        assert found.target == (example.target,)
        assert found.weights.shape == (1, 1, 1, len(found.source))
        assert found.weights.sum().item() == pytest.approx(1)
        assert (found.weights >= 0).all()
        assert len(found.source) == len(found.recording.frames)
        assert found.source[1] == "0.01 s" and found.recording.frames_per_position == 1
        assert not spectrogram_of(found).has_spans


def test_attention_of_a_batch_equals_that_of_single_examples(task):
    together = task.attend(EXAMPLES[:5])
    for example, found in zip(EXAMPLES, together, strict=False):
        (alone,) = task.attend([example])
        assert torch.allclose(found.weights, alone.weights, atol=1e-5)
        assert found.source == alone.source


def test_predictions_do_not_depend_on_the_batch(task):
    sources = [example.source for example in EXAMPLES]
    together = [best[0] for best in task.predict(sources)]
    for source, found in zip(sources[:5], together, strict=False):
        ((alone,),) = task.predict([source])
        assert alone.text == found.text
        assert alone.log_prob == pytest.approx(found.log_prob, abs=1e-5)
