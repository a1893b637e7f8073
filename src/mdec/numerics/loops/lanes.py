"""Sums that a loop keeps in the registers of the processor.

The compiler finds vectors in plain loops, but their sums go to memory and back at every
step. These do not. Nothing is reordered or fused with a product, so that every
processor rounds alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from llvmlite import ir
from numba import extending
from numba.core import types

# The columns of a block are a multiple of this; so many of these go together at most.
LANES = 16
MOST = 4

_NUMBERS: dict[Any, Any] = {
    types.float32: ir.FloatType(),
    types.float64: ir.DoubleType(),
}
_numba: Any = extending


def _intrinsic(function: Callable[..., Any]) -> Any:
    return _numba.intrinsic(function)


def pad_columns(block: Any) -> Any:
    """Return a copy of a block with columns of zeros up to a multiple of the lanes.

    Two lanes at least, so that no loop is compiled for one alone.
    """
    n, width = block.shape
    out = np.zeros((n, max(2, -(-width // LANES)) * LANES), dtype=block.dtype)
    out[:, :width] = block
    return out


def column_groups(width: int) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yield where each group of columns starts, and an item for each of its lanes.

    A loop is compiled for each number of items.
    """
    n_lanes = width // LANES
    n_groups = -(-n_lanes // MOST)
    starts = [n_lanes * group // n_groups for group in range(n_groups + 1)]
    for start, stop in pairwise(starts):
        yield start * LANES, (0,) * (stop - start)


class _Sums(types.Type):
    def __init__(self, dtype: Any, n_lanes: int) -> None:
        super().__init__(name=f"Sums({dtype}, {n_lanes})")
        self.dtype, self.n_lanes = dtype, n_lanes
        self.vector = ir.VectorType(_NUMBERS[dtype], LANES)


@extending.register_model(_Sums)
class _SumsModel(extending.models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        held = ir.ArrayType(kind.vector, kind.n_lanes)
        _numba.models.PrimitiveModel.__init__(self, manager, kind, held)


def _places(context: Any, builder: Any, kind: Any, values: Any) -> Iterator[Any]:
    """Yield each lane and where its numbers lie in an array, from a place on."""
    array, _, sums = kind.args
    data = context.make_array(array)(context, builder, values[0]).data
    vector = ir.VectorType(_NUMBERS[array.dtype], LANES).as_pointer()
    for lane in range(sums.n_lanes):
        place = builder.add(values[1], ir.Constant(values[1].type, lane * LANES))
        yield lane, builder.bitcast(builder.gep(data, [place]), vector)


@_intrinsic
def zeros(_typing: Any, group: Any, like: Any) -> Any:
    """Return sums of nothing for a group of columns, of the type of a number."""
    sums = _Sums(like, len(group))

    def build(context: Any, _builder: Any, _kind: Any, _values: Any) -> Any:
        return ir.Constant(context.get_value_type(sums), None)

    return sums(group, like), build


@_intrinsic
def load(_typing: Any, array: Any, _first: Any, sums: Any) -> Any:
    """Return the numbers of a flat array from a place on, as many as there are sums."""

    def build(context: Any, builder: Any, kind: Any, values: Any) -> Any:
        found = ir.Constant(context.get_value_type(sums), ir.Undefined)
        for lane, place in _places(context, builder, kind, values):
            part = builder.load(place, align=array.dtype.bitwidth // 8)
            if array.dtype != sums.dtype:
                part = builder.fpext(part, sums.vector)
            found = builder.insert_value(found, part, lane)
        return found

    return sums(array, types.intp, sums), build


@_intrinsic
def store(_typing: Any, array: Any, _first: Any, sums: Any) -> Any:
    """Write sums to a flat array from a place on."""

    def build(context: Any, builder: Any, kind: Any, values: Any) -> Any:
        for lane, place in _places(context, builder, kind, values):
            part = builder.extract_value(values[2], lane)
            if array.dtype != sums.dtype:
                part = builder.fptrunc(part, place.type.pointee)
            builder.store(part, place, align=array.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(array, types.intp, sums), build


@_intrinsic
def add_product(_typing: Any, sums: Any, _weight: Any, numbers: Any) -> Any:
    """Return the sums with the products of a weight and numbers added."""

    def build(_context: Any, builder: Any, _kind: Any, values: Any) -> Any:
        found, weight, others = values
        index, none = ir.IntType(32), ir.Constant(sums.vector, ir.Undefined)
        one = builder.insert_element(none, weight, ir.Constant(index, 0))
        alike = ir.Constant(ir.VectorType(index, LANES), None)
        weights = builder.shuffle_vector(one, none, alike)
        for lane in range(sums.n_lanes):
            product = builder.fmul(weights, builder.extract_value(others, lane))
            total = builder.fadd(builder.extract_value(found, lane), product)
            found = builder.insert_value(found, total, lane)
        return found

    return sums(sums, sums.dtype, numbers), build
