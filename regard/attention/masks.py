"""Who may attend to what: bool, True = may attend; masks are joined with `&`."""

import torch
from torch import Tensor


def padding(lengths: Tensor, length: int) -> Tensor:
    """Allow the real positions of each sequence.

    Args:
        lengths: (B,) number of real positions.
        length: Number of positions in all.

    Returns:
        (B, L), True before the end of each sequence.
    """
    return torch.arange(length, device=lengths.device) < lengths[:, None]  # (B, L)


def causal(num_queries: int, num_keys: int, device: torch.device | None = None) -> Tensor:
    """Allow each position to see itself and what came before: j ≤ i.

    With more keys than queries the queries are the last positions, as in step-by-step decoding.

    Returns:
        (Q, K), True on and below the diagonal.
    """
    rows = torch.arange(num_keys - num_queries, num_keys, device=device)
    return torch.arange(num_keys, device=device) <= rows[:, None]  # (Q, K)


def recent(
    num_queries: int, num_keys: int, *, window: int, device: torch.device | None = None
) -> Tensor:
    """Allow each position to see itself and the `window - 1` before it.

    With more keys than queries the queries are the last positions, as in step-by-step decoding.

    Returns:
        (Q, K), True in a band on and below the diagonal.
    """
    rows = torch.arange(num_keys - num_queries, num_keys, device=device)[:, None]
    positions = torch.arange(num_keys, device=device)
    return (positions <= rows) & (positions > rows - window)  # (Q, K)


def window(centres: Tensor, num_keys: int, *, half_width: int) -> Tensor:
    """Allow the keys at most `half_width` positions away from each query's centre.

    Luong et al. 2015, section 3.2: the window [p - D, p + D].

    Args:
        centres: (..., Q), positions among the keys, whole or not.
        num_keys: Number of keys.
        half_width: Half the width of the window.

    Returns:
        (..., Q, K).
    """
    positions = torch.arange(num_keys, device=centres.device)
    return (positions - centres[..., None]).abs() <= half_width  # (..., Q, K)


def block(query_blocks: Tensor, key_blocks: Tensor) -> Tensor:
    """Allow queries and keys of the same block, as when several texts share one row.

    Args:
        query_blocks: (..., Q), the number of each query's block.
        key_blocks: (..., K), the number of each key's block.

    Returns:
        (..., Q, K).
    """
    return query_blocks[..., :, None] == key_blocks[..., None, :]  # (..., Q, K)


if __name__ == "__main__":
    print("causal, 1 = may attend:", causal(5, 5).int(), sep="\n")
