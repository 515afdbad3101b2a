import datetime
import logging
from dataclasses import dataclass, field
from typing import Annotated, Literal

import pytest

from regard.core.config import Config, NonNegativeFloat, PerKind, Positive, from_dict
from regard.core.errors import ConfigError
from regard.core.overrides import override
from regard.runs.recipes import load_recipe
from regard.training.optimizers import MuonConfig


@dataclass(frozen=True, kw_only=True)
class RoundConfig(Config):
    kind: Literal["round", "oval"] = "round"
    radius: NonNegativeFloat = 1.0
    color: str = "black"
    weight: Annotated[float, PerKind()] = 1.0


@dataclass(frozen=True, kw_only=True)
class SquareConfig(Config):
    kind: Literal["square"] = "square"
    side: int = 2
    color: str = "white"
    radius: Literal["sharp", "blunt"] = "sharp"
    weight: Annotated[float, PerKind()] = 5.0


@dataclass(frozen=True, kw_only=True)
class FrameConfig(Config):
    kind: Literal["frame"] = "frame"
    inner: RoundConfig | SquareConfig = field(default_factory=SquareConfig)
    side: Positive = 3


@dataclass(frozen=True, kw_only=True)
class PageConfig(Config):
    shape: RoundConfig | SquareConfig | FrameConfig = field(default_factory=RoundConfig)
    copies: int = 1


@pytest.fixture
def notices(caplog):
    caplog.set_level(logging.INFO, logger="regard")
    return lambda: [record.getMessage() for record in caplog.records]


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("copies=3", 3),
        ("copies = 3", 3),
        ("copies=1e-4", 1e-4),
        ("copies=true", True),
        ("copies=[1, 2]", [1, 2]),
        ('copies="3"', "3"),
        ("copies=plain words", "plain words"),
        ("copies=a=b", "a=b"),
        ("copies=", ""),
    ],
)
def test_override_is_parsed_as_toml_or_as_text(word, value):
    assert override({}, [word]) == {"copies": value}


def test_override_creates_missing_sections():
    assert override({"a": {"b": 1}}, ["a.c.d=2"]) == {"a": {"b": 1, "c": {"d": 2}}}


def test_override_does_not_modify_the_original():
    values = {"shape": {"kind": "round"}}
    override(values, ["shape.radius=2"])
    assert values == {"shape": {"kind": "round"}}


def test_override_keeps_unknown_values():
    day = datetime.date(2024, 2, 29)
    assert override({"title": day}, ["copies=2"]) == {"title": day, "copies": 2}


@pytest.mark.parametrize("word", ["copies", "=3", " =3"])
def test_override_without_key_or_value_is_an_error(word):
    with pytest.raises(ConfigError, match=rf"^'{word}' must have the form section\.key=value\.$"):
        override({}, [word])


def test_override_inside_a_single_value_is_an_error():
    with pytest.raises(
        ConfigError, match=r"^`title\.size` is not a setting: `title` holds a single value\.$"
    ):
        override({"title": "A page"}, ["title.size=3"])


def test_new_kind_drops_the_settings_of_the_old_kind():
    values = {"shape": {"kind": "round", "radius": 2.0}, "copies": 4}
    assert override(values, ["shape.kind=square"]) == {"shape": {"kind": "square"}, "copies": 4}


def test_same_kind_keeps_its_settings():
    values = {"shape": {"kind": "round", "radius": 2.0}}
    assert override(values, ["shape.kind=round"]) == values


def test_order_of_the_overrides_does_not_matter():
    values = {"shape": {"kind": "round", "radius": 2.0}}
    words = ["shape.side=5", "shape.kind=square"]
    changed = {"shape": {"kind": "square", "side": 5}}
    assert override(values, words) == override(values, words[::-1]) == changed


def test_new_kind_keeps_the_settings_that_it_also_has(notices):
    values = {"shape": {"kind": "round", "radius": 2.0, "color": "red"}}
    changed = override(values, ["shape.kind=square"], PageConfig)
    assert changed == {"shape": {"kind": "square", "color": "red"}}
    assert notices() == ["shape.kind=square: kept color='red'; changed radius=2.0 → 'sharp'."]


def test_settings_marked_per_kind_are_dropped(notices):
    values = {"shape": {"kind": "round", "weight": 3.0}}
    assert override(values, ["shape.kind=square"], PageConfig) == {"shape": {"kind": "square"}}
    assert notices() == ["shape.kind=square: changed weight=3.0 → 5.0."]


def test_values_outside_the_limits_of_the_new_kind_are_dropped(notices):
    values = {"shape": {"kind": "square", "side": 0}}
    assert override(values, ["shape.kind=frame"], PageConfig) == {"shape": {"kind": "frame"}}
    assert "changed side=0 → 3" in notices()[0]


def test_kinds_of_one_class_keep_all_other_settings(notices):
    values = {"shape": {"kind": "round", "radius": 2.0}}
    assert override(values, ["shape.kind=oval"], PageConfig)["shape"]["radius"] == 2.0
    assert notices() == ["shape.kind=oval: kept radius=2.0."]


def test_settings_that_are_also_given_are_not_reported(notices):
    values = {"shape": {"kind": "round", "color": "red"}}
    changed = override(values, ["shape.color=blue", "shape.kind=square"], PageConfig)
    assert changed == {"shape": {"kind": "square", "color": "blue"}}
    assert notices() == []


def test_a_kind_within_a_kind_is_changed_after_the_outer_one():
    words = ["shape.inner.kind=round", "shape.inner.radius=4", "shape.kind=frame"]
    values = {"shape": {"kind": "round", "radius": 2.0}}
    changed = override(values, words, PageConfig)
    assert changed == {"shape": {"kind": "frame", "inner": {"kind": "round", "radius": 4}}}


def test_an_unknown_kind_reports_nothing_but_the_error(notices):
    values = {"shape": {"kind": "round", "radius": 2.0}}
    changed = override(values, ["shape.kind=squarish"], PageConfig)
    with pytest.raises(ConfigError, match="Did you mean 'square'"):
        from_dict(PageConfig, changed)
    assert notices() == []


def test_encoders_of_a_recipe_share_their_size(tmp_path, notices):
    path = tmp_path / "mine.toml"
    path.write_text(
        '[model.encoder]\nkind = "transformer"\ndim = 64\nnum_heads = 2\npositions = "rotary"\n'
        "dropout = 0.2\n"
    )
    encoder = load_recipe(str(path), ["model.encoder.kind=rnn"]).model.encoder
    assert (encoder.kind, encoder.dim, encoder.dropout) == ("rnn", 64, 0.2)
    assert notices() == [
        "model.encoder.kind=rnn: kept dim=64, dropout=0.2; dropped num_heads=2, positions='rotary'."
    ]


def test_a_learning_rate_belongs_to_its_optimizer(tmp_path, notices):
    path = tmp_path / "mine.toml"
    path.write_text(
        '[train.optimizer]\nkind = "sgd"\nlearning_rate = 0.5\nweight_decay = 0.1\nmomentum = 0.9\n'
    )
    optimizer = load_recipe(str(path), ["train.optimizer.kind=muon"]).train.optimizer
    assert optimizer == MuonConfig(momentum=0.9)
    assert "changed learning_rate=0.5 → 0.001, weight_decay=0.1 → 0.01" in notices()[0]


def test_settings_chosen_from_the_data_are_not_reported(notices):
    defaults = {"data.source.kind": "char", "data.source.vocab_size": 70}
    source = load_recipe("bahdanau2015-laptop", defaults=defaults).data.source
    assert (source.kind, source.vocab_size, notices()) == ("char", 70, [])


def test_a_kind_given_by_the_user_replaces_all_settings_chosen_from_the_data():
    defaults = {"data.source.kind": "char", "data.source.vocab_size": 70}
    recipe = load_recipe("bahdanau2015-laptop", ["data.source.kind=bpe"], defaults=defaults)
    assert (recipe.data.source.kind, recipe.data.source.vocab_size) == ("bpe", 8000)


@pytest.mark.parametrize(
    ("word", "names"),
    [
        ("dropout=0.3", ("`model.encoder.dropout`", "`model.decoder.dropout`")),
        ("model.dropout=0.3", ("`model.encoder.dropout`", "`model.decoder.dropout`")),
        ("train.learning_rate=0.1", ("`train.optimizer.learning_rate`",)),
        ("lerning_rate=0.1", ("`train.optimizer.learning_rate`",)),
        ("max_steps=10", ("`train.max_steps`",)),
    ],
)
def test_a_setting_of_a_section_below_is_suggested_by_its_full_name(word, names):
    with pytest.raises(ConfigError) as error:
        load_recipe("bahdanau2015-laptop", [word])
    assert f"Did you mean {' or '.join(names)}?" in str(error.value)
