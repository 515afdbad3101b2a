import pytest
import torch

from regard.core.errors import ConfigError
from regard.core.specs import ImageSpec, TextImageSpec, TextSpec
from regard.models.classifier import Classifier, ClassifierConfig
from regard.models.encoders import max_tokens
from regard.models.encoders.convolutional import ConvolutionEncoderConfig
from regard.models.encoders.hybrid import HybridEncoderConfig
from regard.models.encoders.resnet import ResnetEncoderConfig
from regard.models.encoders.rnn import RnnEncoderConfig
from regard.models.encoders.text_image import TextImageEncoder, TextImageEncoderConfig
from regard.models.encoders.transformer import TransformerEncoderConfig
from regard.models.encoders.vit import VitEncoderConfig

BLOCKS = {"dim": 8, "num_layers": 1, "num_heads": 2, "feed_forward_dim": 5, "dropout": 0.0}
TEXTS = {
    "transformer": TransformerEncoderConfig(**BLOCKS),
    "rnn": RnnEncoderConfig(embedding_dim=5, dim=4, num_layers=1, dropout=0.0),
    "convolution": ConvolutionEncoderConfig(dim=8, num_layers=1, dropout=0.0),
}
IMAGES = {
    "vit": VitEncoderConfig(patch=2, **BLOCKS),
    "resnet": ResnetEncoderConfig(widths=(6,), blocks=(1,)),
    "hybrid": HybridEncoderConfig(grid=ResnetEncoderConfig(widths=(6,), blocks=(1,)), **BLOCKS),
}
SPEC = TextImageSpec(TextSpec(11), ImageSpec(3, 4, 6))


def settings(text="transformer", image="vit", **changes):
    return TextImageEncoderConfig(
        **{"text": TEXTS[text], "image": IMAGES[image], "num_heads": 2, "dropout": 0.0, **changes}
    )


def build(**changes):
    torch.manual_seed(0)
    return TextImageEncoder(settings(**changes), SPEC).eval()


@pytest.fixture
def pair():
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(4, 11, (2, 5), generator=generator)
    images = torch.randn(2, *SPEC.image.shape, generator=generator)
    mask = torch.tensor([[True] * 5, [True] * 3 + [False] * 2])
    return ids, images, mask


@pytest.mark.parametrize("num_layers", [0, 2])
@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("image", IMAGES)
def test_batched_equals_alone(pair, text, image, num_layers):
    encoder = build(text=text, image=image, num_layers=num_layers)
    ids, images, mask = pair
    memory = encoder((ids, images), mask)
    alone = encoder((ids[1:, :3], images[1:]), mask[1:, :3])
    assert torch.allclose(memory.states[1][memory.mask[1]], alone.states[0], atol=1e-5)
    assert torch.allclose(memory.summary[1], alone.summary[0], atol=1e-5)


@pytest.mark.parametrize("num_layers", [0, 1])
def test_padding_does_not_matter(pair, num_layers):
    encoder = build(num_layers=num_layers)
    ids, images, mask = pair
    before = encoder((ids, images), mask)
    other = ids.where(mask, 9)
    after = encoder((other, images), mask)
    assert torch.equal(before.states[before.mask], after.states[after.mask])
    assert torch.equal(before.summary, after.summary)


def test_cells_come_before_words_and_padding_is_last(pair):
    ids, images, mask = pair
    memory = build()((ids, images), mask)
    assert memory.layout == (2, 3)
    assert memory.states.shape == (2, 5 + 6, 8)
    assert memory.mask[1].tolist() == [True] * 6 + [True] * 3 + [False] * 2


def changed_positions(encoder, pair):
    """Positions of the first pair that change with another image."""
    ids, images, mask = pair
    before = encoder((ids, images), mask).states[0]
    after = encoder((ids, images + 1), mask).states[0]
    return ((after - before).abs().sum(-1) > 1e-6).tolist()


def test_without_blocks_words_do_not_depend_on_the_image(pair):
    assert changed_positions(build(num_layers=0), pair)[6:] == [False] * 5


def test_with_blocks_words_depend_on_the_image(pair):
    assert changed_positions(build(num_layers=1), pair) == [True] * 11


@pytest.mark.parametrize("num_layers", [0, 1])
@pytest.mark.parametrize("pooling", ["summary", "mean", "max", "attention"])
def test_every_pooling_depends_on_words_and_image(pair, pooling, num_layers):
    torch.manual_seed(0)
    config = ClassifierConfig(encoder=settings(num_layers=num_layers), pooling=pooling, dropout=0.0)
    classifier = Classifier(config, SPEC, 3).eval()
    ids, images, mask = pair
    before = classifier((ids, images), mask)
    assert before.shape == (2, 3)
    assert not torch.allclose(before, classifier((ids, images * -2), mask))
    assert not torch.allclose(before, classifier(((ids + 1) % 11, images), mask))


@pytest.mark.parametrize("num_layers", [0, 1])
@pytest.mark.parametrize("pooling", ["first", "aligned"])
def test_pooling_of_the_first_token_is_an_error(pooling, num_layers):
    with pytest.raises(
        ConfigError,
        match=rf"^`pooling` must not be '{pooling}' with an encoder of images, whose first state is"
        r" no token and which has no second text\. Set it to 'summary' or 'mean'\.$",
    ):
        ClassifierConfig(encoder=settings(num_layers=num_layers), pooling=pooling)


def test_pooling_of_the_text_is_an_error():
    text = TransformerEncoderConfig(pooling=2)
    with pytest.raises(ConfigError, match=r"`text.pooling` must be 1 .* but is 2"):
        TextImageEncoderConfig(text=text)


@pytest.mark.parametrize(("name", "value"), [("num_layers", -1), ("num_heads", 0), ("dropout", 1)])
def test_limits(name, value):
    with pytest.raises(ConfigError, match=f"`{name}` must be"):
        TextImageEncoderConfig(**{name: value})


def test_learned_positions_of_the_text_are_limited():
    text = TransformerEncoderConfig(positions="learned", max_length=7)
    assert max_tokens(settings(text="transformer")) == 0
    assert max_tokens(TextImageEncoderConfig(text=text)) == 7
