"""Functions and structures of the library of kernels, with their types."""

import ctypes
import functools
from typing import Any

from regard.core.native.library import load_library


class MapStruct(ctypes.Structure):
    """`Map` of the kernels."""

    _fields_ = (
        ("panels", ctypes.c_void_p),
        ("bias", ctypes.c_void_p),
        ("scales", ctypes.c_void_p),
        ("offsets", ctypes.c_void_p),
        ("inputs", ctypes.c_int64),
        ("outputs", ctypes.c_int64),
        ("precision", ctypes.c_int32),
    )


class NormStruct(ctypes.Structure):
    """`Norm` of the kernels."""

    _fields_ = (
        ("weight", ctypes.c_void_p),
        ("bias", ctypes.c_void_p),
        ("epsilon", ctypes.c_float),
        ("is_rms", ctypes.c_int32),
    )


class BlockStruct(ctypes.Structure):
    """`Block` of the kernels."""

    _fields_ = (
        *((name, MapStruct) for name in ("joint", "self_output", "query", "cross_output")),
        *((name, MapStruct) for name in ("hidden", "output")),
        *((name, NormStruct) for name in ("self_norm", "cross_norm", "feed_norm")),
        *((name, ctypes.c_int32) for name in ("is_norm_first", "activation", "is_gated")),
    )


class KeyValueStruct(ctypes.Structure):
    """`KeyValue` of the kernels."""

    _fields_ = (
        ("keys", ctypes.c_void_p),
        ("values", ctypes.c_void_p),
        *((name, ctypes.c_int64) for name in ("batch", "head", "position")),
    )


class StepStruct(ctypes.Structure):
    """`Step` of the kernels."""

    _fields_ = (
        ("blocks", ctypes.c_void_p),
        *((name, ctypes.c_int64) for name in ("num_blocks", "num_rounds")),
        ("states", ctypes.c_void_p),
        *((name, ctypes.c_int64) for name in ("batch", "rows", "dim", "num_heads")),
        ("caches", ctypes.c_void_p),
        ("num_keys", ctypes.c_int64),
        ("mask", ctypes.c_void_p),
        *((name, ctypes.c_int64) for name in ("mask_batch", "mask_row")),
        ("is_causal", ctypes.c_int32),
        ("memories", ctypes.c_void_p),
        ("memory_length", ctypes.c_int64),
        ("memory_mask", ctypes.c_void_p),
        ("memory_batch", ctypes.c_int64),
        *((name, ctypes.c_void_p) for name in ("cosines", "sines")),
        ("threads", ctypes.c_int64),
    )


class AdvanceStruct(ctypes.Structure):
    """`Advance` of the kernels."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("totals", "log_probs", "limits")),
        *((name, ctypes.c_int64) for name in ("batch", "beams", "vocab", "length", "end")),
        *((name, ctypes.c_void_p) for name in ("best", "best_log_probs", "tokens", "parents")),
        *((name, ctypes.c_void_p) for name in ("is_end", "is_finished", "finished", "kept")),
        *((name, ctypes.c_void_p) for name in ("next_totals", "next_tokens", "next_rows")),
    )


STRUCTS = (MapStruct, NormStruct, BlockStruct, KeyValueStruct, StepStruct, AdvanceStruct)
"""Structures that the kernels declare too, in the order of `struct_sizes`."""

_POINTER, _NUMBER = ctypes.c_void_p, ctypes.c_int64
FUNCTIONS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "struct_sizes": (None, (_POINTER,)),
    "supported_precisions": (ctypes.c_int32, ()),
    "panel_size": (_NUMBER, ()),
    "multiply": (ctypes.c_int32, (*[_POINTER] * 2, *[_NUMBER] * 2, _POINTER, ctypes.c_int32)),
    "run_blocks": (ctypes.c_int32, (_POINTER,)),
    "log_softmax": (None, (_POINTER, _NUMBER, _NUMBER, _POINTER, _NUMBER)),
    "find_top": (None, (*[_POINTER] * 2, *[_NUMBER] * 4, *[_POINTER] * 2)),
    "advance": (None, (_POINTER,)),
    "stop": (None, (*[_POINTER] * 2, *[_NUMBER] * 2, ctypes.c_float, *[_POINTER] * 5)),
    "gru": (None, (*[_POINTER] * 3, *[_NUMBER] * 2, _POINTER)),
    "lstm": (None, (*[_POINTER] * 2, *[_NUMBER] * 2, *[_POINTER] * 2)),
    "score_additively": (
        ctypes.c_int32,
        (*[_POINTER] * 3, ctypes.c_float, *[_NUMBER] * 4, _POINTER),
    ),
    "mix": (ctypes.c_int32, (*[_POINTER] * 3, *[_NUMBER] * 4, *[_POINTER] * 2)),
}
"""Types of results and arguments of the functions of the library."""


@functools.cache
def find_kernels() -> Any:
    """Return the library with the types of its functions; None if there is none."""
    library = load_library()
    if library is None:
        return None
    for name, (result, arguments) in FUNCTIONS.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    sizes = (ctypes.c_int64 * len(STRUCTS))()
    library.struct_sizes(sizes)
    assert list(sizes) == [ctypes.sizeof(struct) for struct in STRUCTS]
    return library


def check(code: int) -> None:
    """Raise `MemoryError` for the code of a kernel that could not allocate its memory."""
    if code:
        raise MemoryError("There is not enough memory for this search. Use smaller batches.")
