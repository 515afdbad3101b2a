import dataclasses

import pytest

from regard.core.errors import ConfigError
from regard.core.specs import AudioSpec, ImageSpec, TextImageSpec, TextSpec, VideoSpec
from regard.models.build import ModelConfig, build_model
from regard.models.decoders import (
    DECODERS,
    BahdanauDecoderConfig,
    LuongDecoderConfig,
    SutskeverDecoderConfig,
    TransformerDecoderConfig,
)
from regard.models.encoders import ENCODERS
from regard.models.encoders.bottleneck import BottleneckEncoderConfig
from regard.models.encoders.image import IMAGE_ENCODERS
from regard.models.encoders.rnn import RnnEncoderConfig
from regard.models.encoders.tables import AUDIO_ENCODERS, ENCODERS_BY_SPEC, TEXT_ENCODERS
from regard.models.heads.copying import PointerConfig
from regard.models.heads.ctc import CtcHeadConfig
from regard.models.init import InitConfig

SIZES = {"embedding_dim": 4, "dim": 4}
TEXT, IMAGE = TextSpec(9), ImageSpec(3, 8, 8)
SPECS = {
    type(spec): spec
    for spec in (TEXT, IMAGE, TextImageSpec(TEXT, IMAGE), AudioSpec(5), VideoSpec(2, IMAGE))
}
READERS = [settings for fitting in ENCODERS_BY_SPEC.values() for settings in fitting]
"""All but the encoder around another."""


def square(settings):
    """Settings whose embeddings and states are 4 wide; a transformer has but one width."""
    names = {field.name for field in dataclasses.fields(settings)}
    return settings(**{name: size for name, size in SIZES.items() if name in names})


def build_tied(ties, decoder=None, *, encoder=None, source=TEXT):
    config = ModelConfig(
        encoder=encoder or RnnEncoderConfig(**SIZES),
        decoder=decoder or SutskeverDecoderConfig(**SIZES),
        ties=ties,
    )
    return build_model(config, source=source, target_vocab_size=9)


@pytest.mark.parametrize("settings", READERS, ids=lambda settings: settings.kind)
def test_settings_choose_the_encoder(settings):
    given = next(what for what, fitting in ENCODERS_BY_SPEC.items() if settings in fitting)
    model = build_tied("none", encoder=square(settings), source=SPECS[given])
    assert type(model.encoder) is ENCODERS[settings]


@pytest.mark.parametrize("settings", DECODERS, ids=lambda settings: settings.kind)
def test_settings_choose_the_decoder(settings):
    model = build_tied("none", square(settings))
    assert type(model.decoder) is DECODERS[settings]


def test_vocabularies_set_the_sizes():
    model = build_tied("none", source=TextSpec(13))
    assert model.encoder.embedding.num_embeddings == 13
    assert model.decoder.output.out_features == 9


def test_weights_are_initialised_by_the_settings():
    config = ModelConfig(
        encoder=RnnEncoderConfig(**SIZES), init=InitConfig(rule="uniform", scale=0.001)
    )
    model = build_model(config, source=TEXT, target_vocab_size=9)
    assert model.decoder.output.weight.abs().max() <= 0.001


def test_untied_matrices_are_separate():
    model = build_tied("none")
    assert model.decoder.output.weight is not model.decoder.embedding.weight


@pytest.mark.parametrize("settings", DECODERS, ids=lambda settings: settings.kind)
def test_output_shares_the_storage_of_the_target_embedding(settings):
    model = build_tied("output", square(settings))
    assert model.decoder.output.weight is model.decoder.embedding.weight
    assert model.encoder.embedding.weight is not model.decoder.embedding.weight


@pytest.mark.parametrize("decoder", DECODERS, ids=lambda settings: settings.kind)
@pytest.mark.parametrize("encoder", TEXT_ENCODERS, ids=lambda settings: settings.kind)
def test_all_three_share_one_storage(encoder, decoder):
    model = build_tied("all", square(decoder), encoder=square(encoder))
    matrices = (model.encoder.embedding, model.decoder.embedding, model.decoder.output)
    assert len({matrix.weight.data_ptr() for matrix in matrices}) == 1


def test_tied_matrix_is_one_parameter():
    numbers = [sum(p.numel() for p in build_tied(ties).parameters()) for ties in ("none", "all")]
    assert numbers[0] - numbers[1] == 2 * 9 * 4


@pytest.mark.parametrize("settings", [SutskeverDecoderConfig, LuongDecoderConfig])
def test_tying_an_output_of_another_width_is_an_error(settings):
    with pytest.raises(
        ConfigError,
        match=r"^`ties` needs a decoder whose last layer is as wide as its embeddings \(4\), but "
        r"it is 5 wide\. Set `decoder.embedding_dim` equal to `decoder.dim`, or .+ to 'none'\.$",
    ):
        build_tied("output", settings(embedding_dim=4, dim=5))


@pytest.mark.parametrize(
    ("decoder", "vocab_size", "shapes"),
    [
        (SutskeverDecoderConfig(**SIZES), 7, r"\(7, 4\) and \(9, 4\)"),
        (BahdanauDecoderConfig(embedding_dim=5, dim=4), 9, r"\(9, 4\) and \(9, 5\)"),
        (TransformerDecoderConfig(dim=8), 9, r"\(9, 4\) and \(9, 8\)"),
    ],
    ids=["vocabulary", "width", "transformer"],
)
def test_tying_embeddings_of_other_shapes_is_an_error(decoder, vocab_size, shapes):
    with pytest.raises(
        ConfigError,
        match=rf"`ties` 'all'.*{shapes}.*`data.is_joint`.*`embedding_dim`.*'output'",
    ):
        build_tied("all", decoder, source=TextSpec(vocab_size))


def test_dot_score_over_a_wider_memory_is_an_error():
    config = ModelConfig(
        encoder=RnnEncoderConfig(is_bidirectional=True, **SIZES),
        decoder=LuongDecoderConfig(score="dot", **SIZES),
    )
    with pytest.raises(ConfigError, match="they are 4 and 8 wide"):
        build_model(config, source=TEXT, target_vocab_size=9)


@pytest.mark.parametrize(
    "settings", [*IMAGE_ENCODERS, *AUDIO_ENCODERS], ids=lambda settings: settings.kind
)
def test_tying_the_source_of_images_and_audio_is_an_error(settings):
    spec = SPECS[ImageSpec if settings in IMAGE_ENCODERS else AudioSpec]
    with pytest.raises(
        ConfigError,
        match="`ties` 'all' needs an encoder of text.*'output'",
    ):
        build_tied("all", encoder=square(settings), source=spec)


@pytest.mark.parametrize("given", ENCODERS_BY_SPEC, ids=lambda spec: spec.__name__)
@pytest.mark.parametrize("settings", READERS, ids=lambda settings: settings.kind)
def test_encoder_of_another_modality_is_an_error(settings, given):
    reads = next(what for what, fitting in ENCODERS_BY_SPEC.items() if settings in fitting)
    if reads == given:
        build_tied("none", encoder=square(settings), source=SPECS[given])
        return
    fitting = ", ".join(f"'{kind.kind}'" for kind in ENCODERS_BY_SPEC[given])
    with pytest.raises(
        ConfigError,
        match=rf"^`encoder.kind` '{settings.kind}' reads {reads.plural}, but the source is "
        rf"{given.plural}\. Set it to one of {fitting}\.$",
    ):
        build_tied("none", encoder=square(settings), source=SPECS[given])


def test_ctc_with_one_latent_per_source_is_an_error():
    with pytest.raises(
        ConfigError,
        match="`ctc.kind` 'head'.*`encoder.of` is 'summary'.*'none'.*'states'",
    ):
        ModelConfig(encoder=BottleneckEncoderConfig(), ctc=CtcHeadConfig())


def test_ctc_with_one_latent_per_state_is_allowed():
    config = ModelConfig(encoder=BottleneckEncoderConfig(of="states"), ctc=CtcHeadConfig())
    assert build_model(config, source=TEXT, target_vocab_size=9).ctc is not None


@pytest.mark.parametrize("settings", IMAGE_ENCODERS, ids=lambda settings: settings.kind)
def test_copying_from_an_image_is_an_error(settings):
    with pytest.raises(
        ConfigError,
        match=rf"^`copying.kind` 'pointer' needs an encoder with a state for every token, but "
        rf"`encoder.kind` is '{settings.kind}'\. Set `copying.kind` to 'none'\.$",
    ):
        ModelConfig(encoder=settings(), copying=PointerConfig())
