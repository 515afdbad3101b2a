"""Vocabularies of Hugging Face checkpoints: tokenizer.json, or older formats."""

from pathlib import Path
from typing import Any

import tokenizers as library
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors

from regard.core.errors import CheckpointError
from regard.core.files import read_record, write_json
from regard.core.records import read_text
from regard.core.tables import one_of
from regard.data.text.tokenizer_file import library_errors, read_tokenizer, try_out
from regard.data.text.tokenizers import MASK, ROLES, Tokenizer

TOKENIZER = "tokenizer.json"
SETTINGS = "tokenizer_config.json"
SPECIAL = "special_tokens_map.json"


def read_vocabulary(folder: Path, num_embeddings: int) -> Tokenizer:
    """Read a folder's vocabulary, padded with unused special tokens to `num_embeddings`."""
    if (folder / TOKENIZER).exists():
        trained = read_tokenizer(folder / TOKENIZER)
    elif (folder / "vocab.txt").exists():
        with library_errors(folder / "vocab.txt"):
            trained = _read_wordpiece(folder)
    elif (folder / "vocab.json").exists() and (folder / "merges.txt").exists():
        with library_errors(folder / "merges.txt"):
            trained = _read_byte_pairs(folder)
    else:
        raise CheckpointError(
            f"{folder} must hold a vocabulary ({TOKENIZER}, vocab.txt, or vocab.json with "
            "merges.txt), but has none."
        )
    return wrap_tokenizer(trained, num_embeddings, folder)


def wrap_tokenizer(trained: library.Tokenizer, num_embeddings: int, folder: Path) -> Tokenizer:
    """Return a `Tokenizer` in which every id has a token."""
    ids = sorted(trained.get_vocab(with_added_tokens=True).values())
    if ids != list(range(len(ids))):
        raise CheckpointError(
            f"The token ids of {folder} must be 0 … {len(ids) - 1}, each once, but are not."
        )
    if len(ids) > num_embeddings:
        raise CheckpointError(
            f"The vocabulary of {folder} has {len(ids):,} tokens, but `vocab_size` is "
            f"{num_embeddings:,}. Is it another model's?"
        )
    trained.add_special_tokens([f"<unused_{index}>" for index in range(len(ids), num_embeddings)])
    _check_roles(trained, folder)
    with library_errors(folder):
        try_out(trained)
    return Tokenizer(trained)


def _check_roles(trained: library.Tokenizer, folder: Path) -> None:
    ids = trained.get_vocab(with_added_tokens=True)
    faults = [
        f"`{role}` ({one_of(names)})"
        for role, names in ROLES.items()
        if not any(name in ids for name in names)
    ]
    if faults:
        raise CheckpointError(
            f"The vocabulary of {folder} must have a token for each role, but has none for "
            f"{', '.join(faults)}."
        )
    if trained.decoder is None:
        raise CheckpointError(
            f"The vocabulary of {folder} must have a `decoder`, which joins tokens, but has none."
        )


def _read_wordpiece(folder: Path) -> library.Tokenizer:
    lines = read_text(folder / "vocab.txt").split("\n")
    tokens = {token: index for index, token in enumerate(lines) if token}
    settings = _settings(folder)
    is_lower_cased = bool(settings.get("do_lower_case", True))
    trained = library.Tokenizer(models.WordPiece(tokens, unk_token="[UNK]"))
    trained.normalizer = normalizers.BertNormalizer(
        clean_text=True,
        handle_chinese_chars=bool(settings.get("tokenize_chinese_chars", True)),
        strip_accents=settings.get("strip_accents"),
        lowercase=is_lower_cased,
    )
    trained.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trained.decoder = decoders.WordPiece(prefix="##")
    special = [t for t in ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]") if t in tokens]
    trained.add_special_tokens(special)
    return trained


def _read_byte_pairs(folder: Path) -> library.Tokenizer:
    tokens = read_record(folder / "vocab.json", dict[str, int])
    lines = read_text(folder / "merges.txt").splitlines()
    pairs = [line.split(" ") for line in lines if line and not line.startswith("#version")]
    merges = [(first, second) for first, second in pairs]
    trained = library.Tokenizer(models.BPE(vocab=tokens, merges=merges))
    is_prefixed = bool(_settings(folder).get("add_prefix_space", False))
    trained.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=is_prefixed)
    trained.decoder = decoders.ByteLevel()
    special = [t for t in ("<s>", "<pad>", "</s>", "<unk>", "<mask>") if t in tokens]
    trained.add_special_tokens(special)
    return trained


def _settings(folder: Path) -> dict[str, Any]:
    path = folder / SETTINGS
    return read_record(path, dict[str, Any]) if path.exists() else {}


def write_vocabulary(
    tokenizer: Tokenizer, folder: Path, *, max_length: int, has_segments: bool
) -> None:
    """Write the files of a tokenizer that encodes `<sos> text <eos>` and `<sos> a <eos> b <eos>`.

    Args:
        tokenizer: Tokenizer to write.
        folder: Output folder.
        max_length: Maximum number of tokens of the model.
        has_segments: Whether the second text is another segment.
    """
    second = 1 if has_segments else 0
    start, end = tokenizer.token(tokenizer.sos), tokenizer.token(tokenizer.eos)
    template = processors.TemplateProcessing(
        single=f"{start} $A {end}",
        pair=f"{start} $A {end} $B:{second} {end}:{second}",
        special_tokens=[(start, tokenizer.sos), (end, tokenizer.eos)],
    )
    special = {"cls_token": start, "bos_token": start, "sep_token": end, "eos_token": end}
    tokens = {tokenizer.token(index) for index in range(tokenizer.vocab_size)}
    masks = [spelling for spelling in MASK if spelling in tokens]
    special |= dict(zip(["mask_token"], masks, strict=False))
    inputs = ["input_ids", *["token_type_ids"] * second, "attention_mask"]
    settings = {"model_max_length": max_length, "model_input_names": inputs}
    write_tokenizer(tokenizer, folder, template, special=special, settings=settings)


def write_tokenizer(
    tokenizer: Tokenizer,
    folder: Path,
    template: processors.PostProcessor,
    *,
    special: dict[str, str],
    settings: dict[str, Any],
) -> None:
    """Write a tokenizer with a template of special tokens, and the roles of these tokens."""
    tokenizer.save(folder / TOKENIZER)
    written = library.Tokenizer.from_file(str(folder / TOKENIZER))
    written.post_processor = template
    written.save(str(folder / TOKENIZER))
    special = special | {
        "pad_token": tokenizer.token(tokenizer.pad),
        "unk_token": tokenizer.token(tokenizer.unk),
    }
    write_json(folder / SPECIAL, special)
    kind = {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False}
    write_json(folder / SETTINGS, {**kind, **settings, **special})
