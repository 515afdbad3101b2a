"""The layout of RoBERTa: BERT without segments, whose places begin after the padding token's id."""

from collections.abc import Mapping
from typing import Any, ClassVar

from regard.interop.huggingface.bert import BertLayout
from regard.models.encoders.bert import BertEncoderConfig


class RobertaLayout(BertLayout):
    """RoBERTa (Liu et al. 2019)."""

    model_type = "roberta"
    architecture = "RobertaForMaskedLM"
    defaults: ClassVar[Mapping[str, Any]] = {
        **BertLayout.defaults,
        "vocab_size": 50265,
        "pad_token_id": 1,
    }
    unused = r"\bpooler\.|\.position_ids$"
    prefix = "roberta."
    head_names: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "head.dense.": ("lm_head.dense.",),
        "head.norm.": ("lm_head.layer_norm.",),
        "head.output.": ("lm_head.", "lm_head.decoder."),
    }

    def to_config(self, task: Any) -> dict[str, Any]:
        """Return the `config.json` of a task that fits."""
        tokenizer = task.tokenizer
        return {
            **super().to_config(task),
            "bos_token_id": tokenizer.sos,
            "eos_token_id": tokenizer.eos,
        }

    def _num_skipped(self, config: dict[str, Any]) -> int:
        skipped: int = config["pad_token_id"] + 1
        return skipped

    def _num_segments(self, config: dict[str, Any]) -> int:
        # A second row may be there, but their tokenizers put every token into the first segment.
        return 1

    def _wanted(self, encoder: BertEncoderConfig) -> dict[str, Any]:
        return {"num_segments": min(encoder.num_segments, 1)}
