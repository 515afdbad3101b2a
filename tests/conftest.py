import os
import random
import shutil
import signal
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from regard.attention.reach import MonotonicAttention
from regard.data.examples import Example
from regard.data.readers import write_examples
from regard.models.bottlenecks import PlainBottleneckConfig, VariationalBottleneckConfig
from regard.models.build import ModelConfig, build_model
from regard.models.copying import PointerConfig
from regard.models.decoders import (
    DECODERS,
    ConvolutionDecoderConfig,
    LuongDecoderConfig,
    PrefixDecoderConfig,
    TransformerDecoderConfig,
)
from regard.models.decoders.parts import RecurrentDecoderConfig
from regard.models.encoders import (
    AlbertEncoderConfig,
    BertEncoderConfig,
    BottleneckEncoderConfig,
    ConvolutionEncoderConfig,
    HybridEncoderConfig,
    ImageEncoderConfig,
    JoinedEncoderConfig,
    ListenerEncoderConfig,
    ResnetEncoderConfig,
    RnnEncoderConfig,
    SentencesEncoderConfig,
    SoundEncoderConfig,
    SpeechEncoderConfig,
    TokensEncoderConfig,
    TransformerEncoderConfig,
    VideoEncoderConfig,
    VitEncoderConfig,
)
from regard.tasks.learning import train
from regard.tasks.request import Request

# Several threads cost more than they bring at these sizes, and their sums vary in the last digit.
torch.set_num_threads(1)

VOCAB_SIZE = 11
IMAGE_SHAPE = (3, 8, 6)
VIDEO_SHAPE = (4, *IMAGE_SHAPE)
NUM_MELS = 5
PAD, START, END = 0, 2, 3

CELLS = ("vanilla", "gru", "lstm")

TINY_TOKEN_ENCODERS = {
    f"{cell}-{'both' if is_bidirectional else 'one'}": RnnEncoderConfig(
        cell=cell, is_bidirectional=is_bidirectional, embedding_dim=4, dim=3, num_layers=2
    )
    for cell in CELLS
    for is_bidirectional in (False, True)
} | {
    "convolution": ConvolutionEncoderConfig(
        embedding_dim=4, dim=6, num_layers=2, max_length=16, dropout=0.0
    ),
    "transformer": TransformerEncoderConfig(
        dim=4, num_layers=2, num_heads=2, feed_forward_dim=5, dropout=0.0
    ),
    "bert": BertEncoderConfig(
        dim=4, num_layers=2, num_heads=2, feed_forward_dim=5, max_length=16, dropout=0.0
    ),
    "tokens": TokensEncoderConfig(dim=4),
    "albert": AlbertEncoderConfig(
        embedding_dim=3,
        dim=4,
        num_layers=2,
        num_heads=2,
        feed_forward_dim=5,
        max_length=16,
        dropout=0.0,
    ),
}
TINY_IMAGE_ENCODERS = {
    f"vit-{summary}": VitEncoderConfig(
        patch=2,
        summary=summary,
        positions=positions,
        dim=8,
        num_layers=2,
        num_heads=2,
        feed_forward_dim=5,
        dropout=0.0,
    )
    for summary, positions in (("class", "learned"), ("mean", "sincos2d"))
} | {
    f"resnet-{stem}": ResnetEncoderConfig(stem=stem, widths=widths, blocks=blocks)
    for stem, widths, blocks in (("small", (3, 4), (1, 2)), ("large", (4,), (1,)))
}
TINY_IMAGE_ENCODERS["hybrid"] = HybridEncoderConfig(
    grid=TINY_IMAGE_ENCODERS["resnet-small"],
    dim=8,
    num_layers=2,
    num_heads=2,
    feed_forward_dim=5,
    dropout=0.0,
)
TINY_SOUND_ENCODERS = {
    "listener": ListenerEncoderConfig(dim=3, num_layers=3),
    "speech": SpeechEncoderConfig(
        channels=2, dim=4, num_layers=2, num_heads=2, feed_forward_dim=5, dropout=0.0
    ),
}
TINY_ENCODERS = (
    TINY_TOKEN_ENCODERS
    | TINY_IMAGE_ENCODERS
    | TINY_SOUND_ENCODERS
    | {
        # The sources of these tests have no end token: another one parts them.
        "sentences": SentencesEncoderConfig(
            dim=4,
            num_layers=1,
            num_rounds=2,
            num_heads=2,
            feed_forward_dim=5,
            separator=7,
            dropout=0.0,
        ),
        "joined": JoinedEncoderConfig(
            text=TINY_TOKEN_ENCODERS["gru-both"], image=TINY_IMAGE_ENCODERS["resnet-small"]
        ),
        "video": VideoEncoderConfig(
            image=TINY_IMAGE_ENCODERS["vit-mean"], num_layers=1, num_heads=2, dropout=0.0
        ),
        # Where there is but one code to look at, attention has nothing to learn.
        "bottleneck-plain": BottleneckEncoderConfig(
            encoder=TINY_TOKEN_ENCODERS["gru-both"],
            bottleneck=PlainBottleneckConfig(dim=4),
            of="states",
        ),
        "bottleneck-variational": BottleneckEncoderConfig(
            encoder=TINY_IMAGE_ENCODERS["vit-mean"],
            bottleneck=VariationalBottleneckConfig(dim=3),
            of="states",
        ),
    }
)
TINY_DECODERS = {
    f"{decoder.kind}-{cell}": decoder(cell=cell, embedding_dim=5, dim=6, num_layers=2)
    for decoder in DECODERS
    if issubclass(decoder, RecurrentDecoderConfig)
    for cell in CELLS
} | {
    "luong-monotonic": LuongDecoderConfig(reach="monotonic", embedding_dim=5, dim=6, num_layers=2),
    "convolution": ConvolutionDecoderConfig(
        embedding_dim=5, dim=6, num_layers=2, max_length=16, dropout=0.0
    ),
    "transformer": TransformerDecoderConfig(
        dim=6, num_layers=2, num_heads=2, feed_forward_dim=5, dropout=0.0
    ),
    "prefix": PrefixDecoderConfig(
        dim=6, num_layers=2, num_heads=2, feed_forward_dim=5, dropout=0.0
    ),
}
TINY_POINTERS = {
    f"{source}-{target}-{name}": ModelConfig(
        encoder=TINY_ENCODERS[source],
        decoder=TINY_DECODERS[target],
        copying=PointerConfig(dim=4, coverage=coverage),
    )
    for source, target in (
        ("lstm-both", "bahdanau-lstm"),
        ("gru-one", "luong-gru"),
        ("bert", "cho-gru"),
        ("vanilla-both", "sutskever-vanilla"),
        ("convolution", "convolution"),
        ("transformer", "transformer"),
    )
    for name, coverage in (("pointer", 0.0), ("coverage", 1.0))
}
TINY_CONFIGS = {
    f"{source}-{target}": ModelConfig(encoder=encoder, decoder=decoder)
    for source, encoder in TINY_ENCODERS.items()
    for target, decoder in TINY_DECODERS.items()
} | TINY_POINTERS


@pytest.fixture(autouse=True)
def only_device_tests_see_a_gpu(request, monkeypatch):
    """All others are the same on every machine."""
    if request.node.get_closest_marker("device") is None:
        monkeypatch.setattr(torch.cuda, "is_available", lambda: False)


@dataclass(frozen=True)
class Sentences:
    source: Tensor
    mask: Tensor
    targets: Tensor

    @property
    def lengths(self):
        return self.mask.sum(1).tolist()

    def alone(self, row):
        length = self.lengths[row]
        return self.source[row : row + 1, :length], self.mask[row : row + 1, :length]

    def padded(self, num):
        padding = torch.full((3, num), PAD)
        source = torch.cat([self.source, padding], dim=1)
        return source, torch.cat([self.mask, padding.bool()], dim=1)


@dataclass(frozen=True)
class Images(Sentences):
    """To an image a mask says nothing."""

    def alone(self, row):
        return self.source[row : row + 1], self.mask[row : row + 1]

    def padded(self, num):
        return self.source, torch.zeros(3, num).bool()


@dataclass(frozen=True)
class Joined(Sentences):
    """Sentences, each with an image."""

    def alone(self, row):
        ids, images = self.source
        source, mask = replace(draw_sentences(), source=ids, mask=self.mask).alone(row)
        return (source, images[row : row + 1]), mask

    def padded(self, num):
        ids, images = self.source
        source, mask = replace(draw_sentences(), source=ids, mask=self.mask).padded(num)
        return (source, images), mask


@dataclass(frozen=True)
class Recordings(Sentences):
    """Frames of sound."""

    def padded(self, num):
        source = torch.nn.functional.pad(self.source, (0, 0, 0, num), value=7.0)
        return source, torch.nn.functional.pad(self.mask, (0, num))


def draw_sentences():
    generator = torch.Generator().manual_seed(5)
    source = torch.randint(4, VOCAB_SIZE, (3, 7), generator=generator)
    mask = torch.arange(7) < torch.tensor([7, 3, 5])[:, None]
    targets = torch.randint(4, VOCAB_SIZE, (3, 6), generator=generator)
    targets[:, 0] = START
    return Sentences(source.masked_fill(~mask, PAD), mask, targets)


def draw_images():
    source = torch.randn(3, *IMAGE_SHAPE, generator=torch.Generator().manual_seed(5))
    return Images(source, torch.ones(3, 1).bool(), draw_sentences().targets)


def draw_videos():
    source = torch.randn(3, *VIDEO_SHAPE, generator=torch.Generator().manual_seed(6))
    return Images(source, torch.ones(3, 1).bool(), draw_sentences().targets)


def draw_joined():
    sentences = draw_sentences()
    return Joined((sentences.source, draw_images().source), sentences.mask, sentences.targets)


def draw_recordings():
    source = torch.randn(3, 23, NUM_MELS, generator=torch.Generator().manual_seed(5))
    mask = torch.arange(23) < torch.tensor([23, 9, 14])[:, None]
    # What stands at padding must not matter.
    return Recordings(source.masked_fill(~mask[..., None], 9.0), mask, draw_sentences().targets)


@pytest.fixture
def recordings():
    """Three recordings of 23, 9 and 14 frames, and the targets of the sentences."""
    return draw_recordings()


@pytest.fixture
def sentences():
    """Three sources of 7, 3 and 5 tokens, and three targets of 6."""
    return draw_sentences()


@pytest.fixture
def images():
    """Three images, and the targets of the sentences."""
    return draw_images()


def find_reader(config):
    """What of a model reads the source itself."""
    encoder = config.encoder
    return encoder.encoder if isinstance(encoder, BottleneckEncoderConfig) else encoder


@pytest.fixture
def inputs_of():
    """Settings of a model to what it can read: sentences, images, both, videos or recordings."""

    def draw(config):
        reader = find_reader(config)
        if isinstance(reader, JoinedEncoderConfig):
            return draw_joined()
        if isinstance(reader, VideoEncoderConfig):
            return draw_videos()
        if isinstance(reader, SoundEncoderConfig):
            return draw_recordings()
        reads_images = isinstance(reader, ImageEncoderConfig)
        return draw_images() if reads_images else draw_sentences()

    return draw


@pytest.fixture(params=TINY_CONFIGS.values(), ids=TINY_CONFIGS)
def tiny_config(request):
    """Every encoder with every decoder, the recurrent ones with every cell and direction.

    Every decoder that can copy also does.
    """
    return request.param


@pytest.fixture(scope="session")
def tiny_configs():
    """Settings of every encoder with every decoder, by name."""
    return TINY_CONFIGS


@pytest.fixture(scope="session")
def tiny_pointers():
    """Settings of models that copy, by name."""
    return TINY_POINTERS


@pytest.fixture(scope="session")
def tiny_encoders():
    """Settings of every encoder, by name."""
    return TINY_ENCODERS


@pytest.fixture(scope="session")
def tiny_token_encoders():
    """Settings of every encoder with a state for each token, by name."""
    return TINY_TOKEN_ENCODERS


@pytest.fixture(scope="session")
def tiny_image_encoders():
    """Settings of every encoder of images, by name."""
    return TINY_IMAGE_ENCODERS


@pytest.fixture(scope="session")
def image_shape():
    """Channels, rows and columns of the tiny images."""
    return IMAGE_SHAPE


@pytest.fixture(scope="session")
def tiny_decoders():
    """Settings of every decoder, by name."""
    return TINY_DECODERS


@pytest.fixture
def build():
    """Settings to a tiny model, always with the same weights."""

    def build_seeded(config, seed=0):
        reader = find_reader(config)
        size = IMAGE_SHAPE if isinstance(reader, ImageEncoderConfig) else VOCAB_SIZE
        if isinstance(reader, JoinedEncoderConfig):
            size = VOCAB_SIZE, IMAGE_SHAPE
        if isinstance(reader, VideoEncoderConfig):
            size = VIDEO_SHAPE
        if isinstance(reader, SoundEncoderConfig):
            size = (NUM_MELS,)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model = build_model(config, source_size=size, target_vocab_size=VOCAB_SIZE)
        # Fresh weights give nearly equal logits; larger ones make mistakes visible.
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.mul_(1.5)
        return model.eval()

    return build_seeded


@pytest.fixture
def wake(sentences):
    """A model to itself; a monotonic attention will stop at about half of what it sees.

    Untrained, it would pass by nearly everything, and all its weights would be alike.
    """

    def wake_model(model):
        attention = getattr(model.decoder, "attention", None)
        if isinstance(attention, MonotonicAttention):
            scores = []
            hook = attention.score.register_forward_hook(lambda *call: scores.append(call[2]))
            model(sentences.source, sentences.mask, sentences.targets)
            hook.remove()
            mask = model.encode(sentences.source, sentences.mask).mask
            real = torch.cat(scores, dim=1)[mask[:, None].expand(-1, 6, -1)]
            attention.offset.copy_(-attention.gain * real.mean())
        return model

    return wake_model


TINY_SETTINGS = (
    "data.batch.max_tokens=200",
    "model.encoder.embedding_dim=24",
    "model.encoder.dim=24",
    "model.decoder.embedding_dim=24",
    "model.decoder.dim=24",
    "model.decoder.attention_dim=24",
    "train.max_epochs=10",
    "train.validate_every=50",
    "train.optimizer.learning_rate=0.03",
    "train.schedule.warmup_steps=0",
    "train.precision=fp32",
    "validation.metric=loss",
)


@pytest.fixture(scope="session")
def tiny_settings():
    """Words that make a recipe so small that training takes a second."""
    return TINY_SETTINGS


@dataclass(frozen=True)
class Files:
    """Training, validation and test data, as paths that a command takes."""

    train: str
    valid: str
    test: str

    def request(self, out, *settings, recipe="bahdanau2015-laptop", **changes):
        """Ask for a tiny model on these files."""
        return Request(
            data=(self.train,),
            valid=(self.valid,),
            test=(self.test,),
            recipe=recipe,
            settings=(*TINY_SETTINGS, *settings),
            out=out,
            device="cpu",
            **changes,
        )


def reversed_letters(num):
    """Distinct strings of 2 to 5 of five letters, and the same backwards with gold links."""
    generator = random.Random(0)
    found = {}
    while len(found) < num:
        letters = generator.choices("abcde", k=generator.randint(2, 5))
        last = len(letters) - 1
        found[" ".join(letters)] = Example(
            " ".join(letters),
            " ".join(reversed(letters)),
            alignment=tuple((place, last - place) for place in range(len(letters))),
            tags=("short" if last < 3 else "long",),
        )
    return list(found.values())


@pytest.fixture(scope="session")
def reverse_files(tmp_path_factory):
    """Letters to be written backwards, as JSON lines: 300 pairs, 30 and 30 held out."""
    folder = tmp_path_factory.mktemp("reverse")
    examples = reversed_letters(360)
    files = Files(*(str(folder / f"{side}.jsonl") for side in ("train", "valid", "test")))
    write_examples(Path(files.train), examples[:300])
    write_examples(Path(files.valid), examples[300:330])
    write_examples(Path(files.test), examples[330:])
    return files


@pytest.fixture(scope="session")
def tiny_run(reverse_files, tmp_path_factory):
    """A trained model with attention, shared by all: its folder is to be left as it is."""
    return train(reverse_files.request(tmp_path_factory.mktemp("runs") / "reverse"))


@pytest.fixture(scope="session")
def tiny_run_without_attention(reverse_files, tmp_path_factory):
    """A model of Cho et al. after a single step: it has learned nothing."""
    out = tmp_path_factory.mktemp("runs") / "cho"
    words = ("train.max_steps=1", "model.decoder.kind=cho", "model.decoder.dim=8")
    settings = [word for word in TINY_SETTINGS if not word.startswith("model.decoder")]
    return train(replace(reverse_files.request(out), settings=(*settings, *words)))


class InterruptedAt:
    """Presses Ctrl-C at a step."""

    def __init__(self, step):
        self.step = step

    def start(self, step, total_steps):
        pass

    def advance(self, step):
        if step == self.step:
            signal.raise_signal(signal.SIGINT)

    def show(self, row):
        pass

    def stop(self):
        pass


@pytest.fixture(scope="session")
def interrupted_at():
    """A step to a display that presses Ctrl-C there."""
    return InterruptedAt


@pytest.fixture
def tiny_folder(tiny_run, tmp_path):
    """A copy of the tiny run's folder, to be damaged at will."""
    return Path(shutil.copytree(tiny_run.folder, tmp_path / "run"))


@pytest.fixture(scope="session")
def data_folder():
    """The folder with data sets that do not ship with the package."""
    if "REGARD_DATA" not in os.environ:
        pytest.skip("REGARD_DATA is not set: the shared data is absent")
    return Path(os.environ["REGARD_DATA"])
