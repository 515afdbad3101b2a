import math
import tomllib
from dataclasses import dataclass, field
from typing import Annotated, Literal

import pytest

from regard.core.config import (
    AtLeast,
    Config,
    NonNegativeFloat,
    Positive,
    UnitInterval,
    Within,
    at_least,
    explain,
    field_docs,
    from_dict,
    read_toml,
    to_dict,
    within,
)
from regard.core.errors import ConfigError
from regard.models.build import ModelConfig
from regard.models.decoders import (
    BahdanauDecoderConfig,
    ChoDecoderConfig,
    LuongDecoderConfig,
    SutskeverDecoderConfig,
)
from regard.models.encoders.rnn import RnnEncoderConfig
from regard.models.init import InitConfig
from regard.search.settings import SearchConfig
from regard.training import optimizers as optim
from regard.training import schedules as schedule
from regard.training.settings import TrainConfig


@dataclass(frozen=True, kw_only=True)
class RoundConfig(Config):
    kind: Literal["round"] = "round"
    """Kind of shape."""
    radius: NonNegativeFloat = 1.0
    """From the middle to the rim."""


@dataclass(frozen=True, kw_only=True)
class SquareConfig(Config):
    kind: Literal["square"] = "square"
    """Kind of shape."""
    side: int = 2
    """Length of a side."""


@dataclass(frozen=True, kw_only=True)
class PageConfig(Config):
    title: str
    """Title of the page."""
    shape: RoundConfig | SquareConfig = field(default_factory=RoundConfig)
    """Shape on the page."""
    paper: SquareConfig = field(default_factory=SquareConfig)
    """Background."""
    copies: int = 1
    """Number of copies."""
    is_framed: bool = False
    """Draw a line around it."""
    margins: tuple[float, float] = (0.5, 0.5)
    """Left and right."""
    labels: tuple[str, ...] = ()
    """Words beside the shape."""
    colour: Literal["red", "green"] = "red"
    """The ink."""
    note: str | None = None
    """Footnote."""
    width: int | Literal["auto"] = 80
    """Width in characters, or that of the terminal."""


@dataclass(frozen=True, kw_only=True)
class InkConfig(Config):
    drops: Positive = 1
    """Drops of ink."""
    share: UnitInterval = 0.5
    """Share of it that is used."""
    weight: Annotated[float, AtLeast(0)] = 0.0
    """Weight."""


@dataclass(frozen=True, kw_only=True)
class DarkInkConfig(InkConfig):
    drops: int = 3
    """More drops of ink."""
    share: Annotated[float, Within(0.1, 0.9)] = 0.5
    """Share of it that is used."""
    layers: Positive = 1
    """Number of coats."""

    def __post_init__(self):
        super().__post_init__()
        if self.layers > self.drops:
            raise ConfigError(f"`layers` must be at most `drops`, but is {self.layers}.")


@dataclass(frozen=True, kw_only=True)
class PenConfig(Config):
    ink: InkConfig = field(default_factory=InkConfig)
    """Pen."""


def page(**changes):
    return from_dict(PageConfig, {"title": "A page", **changes})


def test_plain_values_are_converted_to_settings():
    made = page(shape={"kind": "square", "side": 3}, margins=[1, 2.5], labels=["a", "b"])
    assert made == PageConfig(
        title="A page", shape=SquareConfig(side=3), margins=(1.0, 2.5), labels=("a", "b")
    )


@pytest.mark.parametrize("width", [3, "auto"])
def test_number_or_a_word_is_read_and_explained(width):
    made = page(width=width)
    assert made.width == width
    assert from_dict(PageConfig, tomllib.loads(explain(made))) == made


@pytest.mark.parametrize("width", ["atuo", True, 1.5])
def test_neither_a_number_nor_the_word_is_refused(width):
    with pytest.raises(ConfigError, match=r"^`width` must be int or 'auto', but is .*\(\w+\)\.$"):
        page(width=width)


def test_integer_is_converted_to_float():
    assert isinstance(page(shape={"kind": "round", "radius": 3}).shape.radius, float)


def test_unknown_setting_names_the_nearest_and_all_known():
    with pytest.raises(ConfigError) as error:
        page(paper={"sied": 3})
    assert str(error.value) == (
        "`paper.sied` is not a setting. Did you mean 'side'? Known here: 'kind', 'side'."
    )


def test_unknown_setting_without_a_similar_name_gets_no_suggestion():
    with pytest.raises(ConfigError, match=r"^`zzz` is not a setting\. Known here: 'title', "):
        page(zzz=1)


def test_missing_setting_is_named():
    with pytest.raises(ConfigError, match=r"^`title` must be given; it has no default\.$"):
        from_dict(PageConfig, {})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"copies": "3"}, "`copies` must be int, but is '3' (str)."),
        ({"copies": True}, "`copies` must be int, but is True (bool)."),
        ({"copies": 1.5}, "`copies` must be int, but is 1.5 (float)."),
        ({"is_framed": 1}, "`is_framed` must be bool, but is 1 (int)."),
        ({"title": 7}, "`title` must be str, but is 7 (int)."),
        ({"note": 7}, "`note` must be str, but is 7 (int)."),
        ({"labels": "a"}, "`labels` must be a list, but is 'a' (str)."),
        ({"labels": ["a", 2]}, "`labels[1]` must be str, but is 2 (int)."),
        ({"margins": [1.0]}, "`margins` must have 2 values, but has 1."),
        ({"paper": 3}, "`paper` must be a table, but is 3 (int)."),
        ({"shape": "round"}, "`shape` must be a table with a `kind`, but is 'round' (str)."),
        (
            {"colour": "gren"},
            "`colour` must be one of 'red', 'green', but is 'gren'. Did you mean 'green'?",
        ),
        (
            {"shape": {"kind": "rund"}},
            "`shape.kind` must be one of 'round', 'square', but is 'rund'. Did you mean 'round'?",
        ),
        (
            {"shape": {"side": 3}},
            "`shape.kind` must be one of 'round', 'square', but is missing.",
        ),
        (
            {"shape": {"kind": "round", "radius": -1}},
            "`shape.radius` must be at least 0.0, but is -1.0.",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_error_names_path_and_rule(changes, message):
    with pytest.raises(ConfigError) as error:
        page(**changes)
    assert str(error.value) == message


def test_limit_is_inclusive():
    at_least("copies", 1, 1)
    with pytest.raises(ConfigError, match=r"^`copies` must be at least 1, but is 0\.$"):
        at_least("copies", 0, 1)


@pytest.mark.parametrize("value", [-0.1, 1.1])
def test_value_outside_its_range_is_an_error(value):
    within("share", 0.0, low=0.0, high=1.0)
    within("share", 1.0, low=0.0, high=1.0)
    with pytest.raises(ConfigError, match=rf"^`share` must be between 0.0 and 1.0, but is {value}"):
        within("share", value, low=0.0, high=1.0)


def test_nan_is_outside_every_limit():
    with pytest.raises(ConfigError, match="but is nan"):
        at_least("radius", math.nan, 0.0)
    with pytest.raises(ConfigError, match="but is nan"):
        within("radius", math.nan, low=0.0, high=1.0)


@pytest.mark.parametrize(
    ("cls", "values", "message"),
    [
        (InkConfig, {"drops": 0}, "`drops` must be at least 1, but is 0."),
        (InkConfig, {"share": 1.5}, "`share` must be between 0.0 and 1.0, but is 1.5."),
        (InkConfig, {"share": -0.1}, "`share` must be between 0.0 and 1.0, but is -0.1."),
        (InkConfig, {"share": math.nan}, "`share` must be between 0.0 and 1.0, but is nan."),
        (RoundConfig, {"radius": math.nan}, "`radius` must be at least 0.0, but is nan."),
        (InkConfig, {"weight": -1.0}, "`weight` must be at least 0, but is -1.0."),
        (DarkInkConfig, {"weight": -1.0}, "`weight` must be at least 0, but is -1.0."),
        (DarkInkConfig, {"drops": 0}, "`drops` must be at least 1, but is 0."),
        (DarkInkConfig, {"share": 1.0}, "`share` must be between 0.1 and 0.9, but is 1.0."),
        (DarkInkConfig, {"layers": 0}, "`layers` must be at least 1, but is 0."),
        (DarkInkConfig, {"layers": 4}, "`layers` must be at most `drops`, but is 4."),
        (DarkInkConfig, {"layers": 4, "drops": 0}, "`drops` must be at least 1, but is 0."),
    ],
    ids=str,
)
def test_annotated_limits_are_checked(cls, values, message):
    with pytest.raises(ConfigError) as error:
        cls(**values)
    assert str(error.value) == message


def test_annotated_limits_are_inclusive():
    assert InkConfig(drops=1, share=0.0) == InkConfig(share=0)
    assert DarkInkConfig(drops=1, share=0.9).share == 0.9


def test_error_of_an_annotated_limit_names_the_path():
    with pytest.raises(ConfigError) as error:
        from_dict(PenConfig, {"ink": {"drops": 0}})
    assert str(error.value) == "`ink.drops` must be at least 1, but is 0."


def test_annotated_setting_is_converted_and_explained_like_its_type():
    assert isinstance(from_dict(InkConfig, {"weight": 3}).weight, float)
    with pytest.raises(ConfigError, match=r"^`drops` must be int, but is '3' \(str\)\.$"):
        from_dict(InkConfig, {"drops": "3"})
    assert explain(InkConfig()).startswith("# Drops of ink.\ndrops = 1\n")


def test_none_is_omitted_from_plain_values():
    assert "note" not in to_dict(page())


def test_plain_values_contain_lists_and_tables_only():
    assert to_dict(page(labels=["a"]))["labels"] == ["a"]
    assert to_dict(page())["shape"] == {"kind": "round", "radius": 1.0}


def test_toml_file_is_read(tmp_path):
    path = tmp_path / "page.toml"
    path.write_text("\ufefftitle = 'Ä'\n[shape]\nkind = 'square'\n", encoding="utf-8")
    assert read_toml(path) == {"title": "Ä", "shape": {"kind": "square"}}


def test_missing_toml_file_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"absent\.toml does not exist\.$"):
        read_toml(tmp_path / "absent.toml")


@pytest.mark.parametrize(
    "content",
    [b"title = ", b"title = '\xff'", b"copies = " + b"9" * 5000],
    ids=["cut", "latin", "long"],
)
def test_invalid_toml_file_is_named(tmp_path, content):
    path = tmp_path / "page.toml"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=r"page\.toml is not valid TOML: .+\.$"):
        read_toml(path)


def test_field_docs_include_base_classes():
    notes = field_docs(ChoDecoderConfig)
    assert notes["cell"] == "Recurrent cell."
    assert notes["kind"] == "Kind of decoder."


def test_explain_includes_documentation_and_choices():
    assert '# The ink. One of: red, green.\ncolour = "red"\n' in explain(page())
    assert "# Shape on the page. One of: round, square.\n[shape]\n" in explain(page())


def test_explain_shows_none_as_a_comment():
    assert "# Footnote.\n# note =\n" in explain(page())


def test_explain_puts_the_kind_first():
    assert explain(LuongDecoderConfig()).splitlines()[1] == 'kind = "luong"'


ODD_SETTINGS = [
    PageConfig(
        title='"quoted" \\ back\tslash\n\r\x00\x1b\x7f\x85\u2028 Ümläut 日本 🦉 # = [x]',
        shape=SquareConfig(side=-(10**18)),
        is_framed=True,
        margins=(1e-300, 1e300),
        labels=("", "'", "'''", '"""'),
        note="",
    ),
    PageConfig(title="", shape=RoundConfig(radius=1e300), margins=(-0.0, 1e-05)),
    ModelConfig(),
    ModelConfig(
        encoder=RnnEncoderConfig(
            cell="lstm", is_bidirectional=True, is_reversed=True, context="max", dropout=0.1 + 0.2
        ),
        decoder=LuongDecoderConfig(score="location", span="local_p", window=3, is_input_fed=False),
        ties="output",
        init=InitConfig(rule="kaiming_normal", gain=2**0.5, recurrent="default"),
    ),
    ModelConfig(decoder=SutskeverDecoderConfig(num_layers=4, dim=7)),
    ModelConfig(decoder=ChoDecoderConfig(cell="vanilla", embedding_dim=1)),
    ModelConfig(decoder=BahdanauDecoderConfig(attention_dim=1, max_source=1)),
    SearchConfig(beams=12, length_penalty=0.6, max_ratio=1e-7, max_extra=1),
    TrainConfig(),
    *(TrainConfig(optimizer=kind()) for kind in optim.OPTIMIZERS),
    *(TrainConfig(schedule=kind()) for kind in schedule.SCHEDULES),
]


@pytest.mark.parametrize("settings", ODD_SETTINGS, ids=lambda settings: type(settings).__name__)
def test_explain_round_trips(settings):
    assert from_dict(type(settings), tomllib.loads(explain(settings))) == settings


@pytest.mark.parametrize("settings", ODD_SETTINGS, ids=lambda settings: type(settings).__name__)
def test_plain_values_round_trip(settings):
    assert from_dict(type(settings), to_dict(settings)) == settings
