"""What a search finds.

Log-probabilities are the model's own, whatever rule, penalty or temperature led to the tokens.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """One found target."""

    tokens: tuple[int, ...]
    """Token ids without the start token; the end token is last unless the limit cut it off."""
    log_prob: float
    """Log-probability of the tokens, the sum over the steps."""
    step_log_probs: tuple[float, ...]
    """Log-probability of each token given those before it."""
    value: float
    """What hypotheses were ranked by: the log-probability after penalties and length
    normalisation; of what was drawn, the log-probability itself."""
