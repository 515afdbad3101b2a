"""What a search finds."""

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
    """What hypotheses were ranked by: the log-probability after length normalisation."""
