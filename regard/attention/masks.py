"""Attention masks: bool, True = may attend. Masks are combined with `&`."""

import torch
from torch import Tensor


def padding_mask(lengths: Tensor, length: int) -> Tensor:
    """Mask padding: allow the real positions of each sequence.

    Args:
        lengths: (B,) number of real positions.
        length: Total number of positions.

    Returns:
        (B, L), True for real positions.
    """
    return torch.arange(length, device=lengths.device) < lengths[:, None]  # (B, L)


def causal_mask(num_queries: int, num_keys: int, device: torch.device | None = None) -> Tensor:
    """Allow each position to attend to itself and to earlier positions: j ≤ i.

    With more keys than queries, the queries are the last positions, as in incremental decoding.

    Returns:
        (Q, K), True on and below the diagonal.
    """
    rows = torch.arange(num_keys - num_queries, num_keys, device=device)
    return torch.arange(num_keys, device=device) <= rows[:, None]  # (Q, K)


def causal_window_mask(
    num_queries: int, num_keys: int, *, window: int, device: torch.device | None = None
) -> Tensor:
    """Allow each position to attend to itself and to the `window - 1` positions before it.

    With more keys than queries, the queries are the last positions, as in incremental decoding.

    Returns:
        (Q, K), True in a band on and below the diagonal.
    """
    rows = torch.arange(num_keys - num_queries, num_keys, device=device)[:, None]
    positions = torch.arange(num_keys, device=device)
    return (positions <= rows) & (positions > rows - window)  # (Q, K)


def window_mask(centres: Tensor, num_keys: int, *, half_width: int) -> Tensor:
    """Allow the keys at most `half_width` positions away from each query's centre.

    Luong et al. 2015, section 3.2: the window [p - D, p + D].

    Args:
        centres: (..., Q), positions among the keys, int or float.
        num_keys: Number of keys.
        half_width: Half the width of the window.

    Returns:
        (..., Q, K).
    """
    positions = torch.arange(num_keys, device=centres.device)
    return (positions - centres[..., None]).abs() <= half_width  # (..., Q, K)


def block_mask(query_blocks: Tensor, key_blocks: Tensor) -> Tensor:
    """Allow attention within a block, for rows that hold several packed texts.

    Args:
        query_blocks: (..., Q), block index of each query.
        key_blocks: (..., K), block index of each key.

    Returns:
        (..., Q, K).
    """
    return query_blocks[..., :, None] == key_blocks[..., None, :]  # (..., Q, K)


if __name__ == "__main__":
    print("causal, 1 = may attend:", causal_mask(5, 5).int(), sep="\n")
