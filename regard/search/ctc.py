"""CTC search: prefix scores over all alignments, joint scores with a decoder, best path."""

from itertools import groupby

import torch
from torch import Tensor
from torch.nn.functional import pad

from regard.models.interfaces import Emissions, State, join_states, repeat_rows, split_state
from regard.search.hypothesis import Hypothesis
from regard.search.scorer import Scorer


class CtcScorer:
    """CTC scorer of next tokens, summed over all alignments of the generated tokens.

    Watanabe et al. 2017, algorithm 2, after Graves 2008: the probability that a labelling starts
    with a prefix, divided by that of the prefix without its last token; for the end token, the
    probability that the labelling is complete. Beam search with this scorer is prefix beam search.

    Args:
        emissions: Output of the CTC head.
        start: The start token.
        end: The end token.
        banned: Tokens that are never generated, as in `ModelScorer`.
    """

    def __init__(
        self, emissions: Emissions, *, start: int, end: int, banned: tuple[int, ...]
    ) -> None:
        self.batch, self.num_positions, _ = emissions.log_probs.shape
        self.device = emissions.log_probs.device
        positions = torch.arange(self.num_positions, device=self.device)
        lengths = emissions.lengths.to(self.device)
        # Alignments end at the end of the source.
        real = (positions < lengths[:, None])[..., None]  # (B, S, 1)
        log_probs = emissions.log_probs.masked_fill(~real, -torch.inf)
        self.tokens, self.blank = log_probs[..., :-1], log_probs[..., -1]
        self.last = lengths - 1
        self.sos, self.eos, self.banned = start, end, list(banned)

    def start(self, beams: int, max_length: int | None = None) -> State:
        """Return the state before the first token, with `beams` hypotheses per sentence.

        Per hypothesis: the log-probability at each position of the tokens so far, if that position
        emits the last token (`non_blank`) or the blank token (`blank`), both (B·W, S); that of the
        prefix (B·W,); and its last token (B·W,), -1 before the first.
        """
        blank = self.blank.cumsum(1)  # (B, S)
        per_hypothesis = {
            "non_blank": torch.full_like(blank, -torch.inf),
            "blank": blank,
            "prefix": blank.new_zeros(self.batch),
            "last": torch.full_like(self.last, -1),
        }
        return State((), repeat_rows(per_hypothesis, beams))

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Process one token per hypothesis, (B·W,), and return log-probabilities (B·W, V)."""
        beams = len(tokens) // self.batch
        before = state.per_hypothesis
        after = self._advance(tokens, before, beams)
        is_first = tokens == self.sos
        current = {
            name: before[name].where(is_first.view(-1, *[1] * (value.dim() - 1)), value)
            for name, value in after.items()
        }
        return self._next(current, beams), State((), current)

    def _advance(self, tokens: Tensor, before: dict[str, Tensor], beams: int) -> dict[str, Tensor]:
        """Return the state after one more token per hypothesis, (B·W,)."""
        enter = _enter(before, is_repeated=(tokens == before["last"])[:, None])  # (B·W, S)
        emitted = self._emitted(tokens, beams)
        emitted_blank = repeat_rows(self.blank, beams)
        non_blank = blank = torch.full_like(emitted[:, 0], -torch.inf)
        columns = []
        for position in range(self.num_positions):
            # The order matters: `blank` uses `non_blank` of the previous position.
            blank = emitted_blank[:, position] + torch.logaddexp(blank, non_blank)
            non_blank = emitted[:, position] + torch.logaddexp(non_blank, enter[:, position])
            columns.append((non_blank, blank))
        all_non_blank, all_blank = (torch.stack(part, 1) for part in zip(*columns, strict=True))
        prefix = (enter + emitted).logsumexp(1)
        return {"non_blank": all_non_blank, "blank": all_blank, "prefix": prefix, "last": tokens}

    def _emitted(self, tokens: Tensor, beams: int) -> Tensor:
        """Return the log-probability of one token per hypothesis at each position, (B·W, S)."""
        index = tokens.view(self.batch, 1, beams).expand(-1, self.num_positions, -1)
        return self.tokens.gather(2, index).transpose(1, 2).flatten(0, 1)  # (B·W, S)

    def _next(self, current: dict[str, Tensor], beams: int) -> Tensor:
        """Return the log-probabilities of the next token, (B·W, V)."""
        enter = _enter(current).view(self.batch, beams, -1, 1)  # (B, W, S, 1)
        longer = (enter + self.tokens[:, None]).logsumexp(2).flatten(0, 1)  # (B·W, V)
        # A repeated token needs a blank token in between.
        last = current["last"].clamp(min=0)[:, None]
        enter_repeated = _enter(current, is_repeated=current["last"][:, None] >= 0)
        repeated = (enter_repeated + self._emitted(last, beams)).logsumexp(1)
        longer = longer.scatter(1, last, repeated[:, None])
        ends = repeat_rows(self.last, beams)[:, None]
        complete = torch.logaddexp(current["non_blank"], current["blank"]).gather(1, ends)[:, 0]
        longer[:, self.eos] = complete
        longer[:, self.banned] = -torch.inf
        # All continuations of an impossible prefix are impossible.
        return (longer - current["prefix"][:, None]).nan_to_num(nan=-torch.inf, neginf=-torch.inf)


def _enter(current: dict[str, Tensor], is_repeated: Tensor | None = None) -> Tensor:
    """Return the log-probability (B·W, S) of the prefix before each position."""
    total = torch.logaddexp(current["non_blank"], current["blank"])
    if is_repeated is not None:
        total = current["blank"].where(is_repeated, total)
    entered = pad(total[:, :-1], (1, 0), value=-torch.inf)
    # Only the first token can start at the first position.
    entered[:, 0] = entered[:, 0].where(current["last"] >= 0, 0.0)
    return entered


class JointScorer:
    """Weighted sum of decoder and CTC scores: (1 − w) log p + w log p_ctc.

    Watanabe et al. 2017, eq. 14.

    Args:
        decoder: Scorer of the decoder.
        ctc: Scorer of the CTC head.
        weight: Weight of CTC, below 1.
    """

    def __init__(self, decoder: Scorer, ctc: CtcScorer, *, weight: float) -> None:
        self.decoder = decoder
        self.ctc = ctc
        self.weight = weight
        self.batch, self.device = decoder.batch, decoder.device

    def start(self, beams: int, max_length: int | None = None) -> State:
        """Return the state before the first token, with `beams` hypotheses per sentence."""
        return join_states([self.decoder.start(beams, max_length), self.ctc.start(beams)])

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Process one token per hypothesis, (B·W,), and return weighted scores (B·W, V)."""
        decoder_state, ctc_state = split_state(state)
        log_probs, decoder_state = self.decoder.step(tokens, decoder_state)
        ctc_log_probs, ctc_state = self.ctc.step(tokens, ctc_state)
        weighted = (1 - self.weight) * log_probs + self.weight * ctc_log_probs.to(log_probs.dtype)
        return weighted, join_states([decoder_state, ctc_state])


def best_path(emissions: Emissions, *, end: int, banned: tuple[int, ...]) -> list[list[Hypothesis]]:
    """Return the most likely class at each position, with repeats merged and blank tokens removed.

    This is fast and gives the most likely alignment, but not always the most likely labelling
    (Graves et al. 2006, section 3.2).

    Args:
        emissions: Output of the CTC head.
        end: The end token.
        banned: Tokens that are never generated.

    Returns:
        One hypothesis per sentence. The log-probability of a token is that of its part of the path,
        including the blank tokens before it.
    """
    log_probs = emissions.log_probs.clone()
    log_probs[..., [end, *banned]] = -torch.inf
    values, classes = log_probs.max(-1)
    rows = zip(classes.tolist(), values.tolist(), emissions.lengths.tolist(), strict=True)
    return [
        [_collapse(path[:length], steps[:length], blank=emissions.blank, end=end)]
        for path, steps, length in rows
    ]


def _collapse(path: list[int], log_probs: list[float], *, blank: int, end: int) -> Hypothesis:
    tokens, steps, pending, position = [], [], 0.0, 0
    for token, run in groupby(path):
        length = len(list(run))
        pending += sum(log_probs[position : position + length])
        position += length
        if token != blank:
            tokens.append(token)
            steps.append(pending)
            pending = 0.0
    steps.append(pending)
    total = sum(steps)
    return Hypothesis((*tokens, end), total, tuple(steps), total)
