import pytest
import torch

from regard.core.errors import ConfigError
from regard.models.build import ModelConfig
from regard.models.decoders import ConvolutionDecoderConfig, TransformerDecoderConfig
from regard.models.encoders.convolutional import ConvolutionEncoderConfig
from regard.models.encoders.rnn import RnnEncoderConfig
from regard.tasks.generation.recipe import check_positions, limit_targets

LEARNED = ModelConfig(
    encoder=ConvolutionEncoderConfig(max_length=4), decoder=ConvolutionDecoderConfig(max_length=5)
)
UNLIMITED = ModelConfig(encoder=RnnEncoderConfig(), decoder=TransformerDecoderConfig(max_length=4))


def test_texts_up_to_the_last_position_fit():
    check_positions(LEARNED, [[1] * 4], [[1] * 6])


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        (5, 6, r"^`model\.encoder\.max_length` .* \(5 tokens\) .*, but is 4\. Raise it, or lower"),
        (4, 7, r"^`model\.decoder\.max_length` .* \(6 tokens\) .*, but is 5\. Raise it, or lower"),
    ],
)
def test_text_beyond_the_last_position_is_refused(source, target, message):
    with pytest.raises(ConfigError, match=message):
        check_positions(LEARNED, [[1], [1] * source], [[1], [1] * target])


def test_without_learned_positions_any_text_fits():
    check_positions(UNLIMITED, [[1] * 50], [[1] * 50])


def test_targets_are_limited_to_the_positions_of_the_decoder():
    lengths = torch.tensor([3, 5, 9])
    assert limit_targets(lengths, LEARNED).tolist() == [3, 5, 5]
    assert limit_targets(lengths, UNLIMITED).tolist() == [3, 5, 9]
