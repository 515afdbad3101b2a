"""Fields of source and target: fitted to training examples, or loaded from a run folder."""

from collections.abc import Sequence
from pathlib import Path

from regard.core.errors import ConfigError
from regard.data.corpus import MAX_FITTED, sample
from regard.data.example import Example
from regard.data.modality import fit_source, load_source
from regard.data.text.field import TextField, both_sides, texts_of
from regard.data.text.tokenizers import Tokenizer, TokenizerConfig
from regard.data.text.vocabulary import train_tokenizer
from regard.tasks.base import Fields
from regard.tasks.generation.recipe import DataConfig


def fit_pair(config: DataConfig, examples: Sequence[Example]) -> Fields:
    """Fit the fields of source and target, or one vocabulary for both."""
    examples = sample(examples, MAX_FITTED, "The tokenizers are fitted")
    sources = [example.source for example in examples]
    if config.is_joint:
        assert isinstance(config.source, TokenizerConfig)
        texts = [text for source in sources for text in texts_of(source)]
        targets = [example.target for example in examples]
        return {**both_sides(train_tokenizer(config.source, [*texts, *targets]))}
    source = fit_source(config.source, sources)
    return {"source": source, "target": fit_target(config, examples)}


def fit_target(config: DataConfig, examples: Sequence[Example]) -> TextField:
    """Fit the field of the target."""
    tokenizer = train_tokenizer(config.target, [example.target for example in examples])
    return TextField(tokenizer, has_start=True)


def load_pair(config: DataConfig, folder: Path) -> Fields:
    """Load the fields of source and target."""
    target = TextField.load(folder, "target")
    target.add_start()
    return {"source": load_source(config.source, folder), "target": target}


def read_prefix(prefix: str, tokenizer: Tokenizer) -> list[int]:
    """Return the tokens that all targets begin with; raise `ConfigError` for unknown tokens."""
    ids = tokenizer.encode(prefix)
    if tokenizer.unk in ids:
        raise ConfigError(
            f"`prefix` must consist of tokens of the target vocabulary, but '{prefix}' is "
            f"tokenised as '{tokenizer.decode(ids)}'."
        )
    return ids
