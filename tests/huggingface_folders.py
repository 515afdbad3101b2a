"""Small Hugging Face folders with random weights, written by `transformers`."""

import json

import tokenizers as library
import torch
from tokenizers import decoders, models, pre_tokenizers

SIZES = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 24,
    # Weights of the usual size are so small that errors would not show in the logits.
    "initializer_range": 0.5,
}
WORDPIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefgh", "##a", "##b", "##c"]
ALPHABET = sorted(pre_tokenizers.ByteLevel.alphabet())
BYTE_PAIRS = ["<s>", "<pad>", "</s>", "<unk>", *ALPHABET, "ab", "Ġa", "<mask>"]


def randomize(model):
    """Randomise weights that are initialised to zero or one, so that errors in them show."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "norm" in name.lower() or name.endswith("bias"):
                parameter.normal_()
    return model.eval()


def save(model, folder, **options):
    import transformers

    transformers.utils.logging.disable_progress_bar()
    model.save_pretrained(folder, **options)


def save_wordpieces(folder):
    trained = library.Tokenizer(
        models.WordPiece({t: i for i, t in enumerate(WORDPIECES)}, unk_token="[UNK]")
    )
    trained.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trained.decoder = decoders.WordPiece()
    trained.add_special_tokens(WORDPIECES[:5])
    # Many files enable truncation; texts must still be encoded completely.
    trained.enable_truncation(4)
    trained.save(str(folder / "tokenizer.json"))


def save_byte_pairs(folder):
    vocabulary = {token: index for index, token in enumerate(BYTE_PAIRS)}
    (folder / "vocab.json").write_text(json.dumps(vocabulary), encoding="utf-8")
    (folder / "merges.txt").write_text("#version: 0.2\na b\nĠ a\n", encoding="utf-8")


def save_bert(folder, *, has_head=True, **changes):
    import transformers

    torch.manual_seed(0)
    sizes = {"vocab_size": len(WORDPIECES), "max_position_embeddings": 12}
    config = transformers.BertConfig(**{**SIZES, **sizes, **changes})
    kind = transformers.BertForMaskedLM if has_head else transformers.BertModel
    model = randomize(kind(config))
    save(model, folder)
    save_wordpieces(folder)
    return model


def save_roberta(folder, **changes):
    import transformers

    torch.manual_seed(0)
    sizes = {"vocab_size": len(BYTE_PAIRS), "max_position_embeddings": 14, "type_vocab_size": 1}
    config = transformers.RobertaConfig(**{**SIZES, **sizes, "layer_norm_eps": 1e-5, **changes})
    model = randomize(transformers.RobertaForMaskedLM(config))
    save(model, folder)
    save_byte_pairs(folder)
    return model


def save_distilbert(folder, **changes):
    import transformers

    torch.manual_seed(0)
    config = transformers.DistilBertConfig(
        vocab_size=len(WORDPIECES) + 3,
        dim=16,
        n_layers=2,
        n_heads=4,
        hidden_dim=24,
        max_position_embeddings=12,
        initializer_range=0.5,
        **changes,
    )
    model = randomize(transformers.DistilBertForMaskedLM(config))
    save(model, folder)
    save_wordpieces(folder)
    return model


MASKED = {"bert": save_bert, "roberta": save_roberta, "distilbert": save_distilbert}

ENGLISH = [
    "the house is small", "the cat sees the dog", "a dog runs to the house",
    "I see a small cat", "the men eat bread", "do you see the café?", "he cried: no, never!",
]  # fmt: skip
GERMAN = [
    "das Haus ist klein", "die Katze sieht den Hund", "ein Hund läuft zum Haus",
    "ich sehe eine kleine Katze", "die Männer essen Brot", "er rief: nein, nie!",
]  # fmt: skip


def train_sentencepiece(path, texts, vocab_size):
    import sentencepiece

    with path.open("wb") as file:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(texts * 4),
            model_writer=file,
            vocab_size=vocab_size,
            model_type="unigram",
            hard_vocab_limit=False,
            minloglevel=3,
        )
    return sentencepiece.SentencePieceProcessor(model_file=str(path))


def save_sentencepieces(folder, *, is_joint=True):
    """Save two SentencePiece models and a vocabulary in another order, as OPUS-MT does."""
    folder.mkdir(parents=True, exist_ok=True)
    source = train_sentencepiece(folder / "source.spm", ENGLISH, 60)
    target = train_sentencepiece(folder / "target.spm", GERMAN, 60)
    sides = [
        [side.id_to_piece(i) for i in range(side.get_piece_size()) if not side.is_control(i)]
        for side in (source, target)
    ]
    joint = [sorted({*sides[0], *sides[1]})]
    vocabularies = joint if is_joint else [sorted(set(side)) for side in sides]
    sizes = []
    for name, entries in zip(("vocab.json", "target_vocab.json"), vocabularies, strict=False):
        plain = [token for token in entries if token != "<unk>"]
        # `config.json` has one padding id for both sides.
        tokens = ["</s>", "<unk>", *plain, ">>deu<<", "<pad>"]
        if not is_joint:
            tokens = ["</s>", "<unk>", "<pad>", *plain, ">>deu<<"]
        vocabulary = {token: index for index, token in enumerate(tokens)}
        (folder / name).write_text(json.dumps(vocabulary), encoding="utf-8")
        sizes.append(len(tokens))
    return sizes[0], sizes[-1], vocabulary["<pad>"]


def save_marian(folder, *, activation="swish", is_joint=True, as_pickle=False):
    import transformers

    source_size, target_size, pad = save_sentencepieces(folder, is_joint=is_joint)
    torch.manual_seed(0)
    config = transformers.MarianConfig(
        vocab_size=source_size,
        decoder_vocab_size=target_size,
        share_encoder_decoder_embeddings=is_joint,
        d_model=16,
        encoder_layers=2,
        decoder_layers=1,
        encoder_attention_heads=4,
        decoder_attention_heads=2,
        encoder_ffn_dim=24,
        decoder_ffn_dim=20,
        max_position_embeddings=64,
        activation_function=activation,
        scale_embedding=True,
        init_std=0.5,
        pad_token_id=pad,
        decoder_start_token_id=pad,
        eos_token_id=0,
        forced_eos_token_id=None,
    )
    model = randomize(transformers.MarianMTModel(config))
    with torch.no_grad():
        model.final_logits_bias.normal_()
    save(model, folder)
    if as_pickle:
        (folder / "model.safetensors").unlink()
        torch.save(model.state_dict(), folder / "pytorch_model.bin")
    return model


def save_vit(folder, *, has_head=True, preprocessor=None, **changes):
    """Save an image classifier with four labels, two of the same name."""
    import transformers

    torch.manual_seed(0)
    names = ("cat", "crane", "dog", "crane")
    options = {
        "image_size": 8,
        "patch_size": 4,
        "id2label": dict(enumerate(names)),
        "label2id": {name: number for number, name in enumerate(names)},
    }
    config = transformers.ViTConfig(**{**SIZES, **options, **changes})
    kind = transformers.ViTForImageClassification if has_head else transformers.ViTModel
    model = randomize(kind(config))
    save(model, folder)
    if preprocessor is not None:
        path = folder / "preprocessor_config.json"
        path.write_text(json.dumps(preprocessor), encoding="utf-8")
    return model
