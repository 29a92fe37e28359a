"""Matrix product of float32 arrays for compiled functions: no call into a library, at its speed for small matrices.

A tile of the result stays in registers while the sum runs. LLVM does not find that form by itself, so the tile is
written in its own language; everything around it is plain Python. With numba's np.dot instead, a whole update of the
cars takes 1.1 to 1.6 times as long (their GRU multiplies parts of matrices), one of a robot as long.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import binding, ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from maip3o.jit import FUSED, kernel

# A vector is one register; 2 * ROWS of them hold the tile, and two or three more its factors.
LANES, ROWS = (16, 8) if binding.get_host_cpu_features().get("avx512f") else (8, 6)
WIDTH = 2 * LANES
FLOAT, INT32, INT64 = ir.FloatType(), ir.IntType(32), ir.IntType(64)
VECTOR = ir.VectorType(FLOAT, LANES)

MATRIX = types.Array(types.float32, 2, "A")  # any strides: one compiled form for all


def _tile(vectors: int) -> Any:
    """A function for one tile of at most ROWS rows and `vectors` * LANES columns. Addresses and strides in bytes.

    Rows beyond the last repeat it: they read and write the same numbers again. Columns beyond the last are masked.
    """

    def tile(context, a, a_row, a_column, b, b_row, out, out_row, rows, columns, depth, add):  # type: ignore[no-untyped-def]
        def generate(context, builder, signature, values):  # type: ignore[no-untyped-def]
            kind = ir.FunctionType(ir.VoidType(), [INT64] * 10 + [ir.IntType(1)])
            function = cgutils.get_or_insert_function(builder.module, kind, f"product_tile_{vectors}")
            if function.is_declaration:
                # One copy of it, not one per call: long code takes long to compile.
                function.linkage = "linkonce_odr"
                function.attributes.add("noinline")
                _generate(ir.IRBuilder(function.append_basic_block("entry")), vectors, *function.args)
            builder.call(function, values)
            return context.get_dummy_value()

        return types.void(*[types.intp] * 10, types.boolean), generate

    return intrinsic(tile)


def _generate(  # type: ignore[no-untyped-def]
    builder, vectors, a, a_row, a_column, b, b_row, out, out_row, rows, columns, depth, add
):
    tile = [(i, v) for i in range(ROWS) for v in range(vectors)]
    repeated = [_minimum(builder, _integer(i), builder.sub(rows, _integer(1))) for i in range(ROWS)]
    a_offsets = [builder.mul(i, a_row) for i in repeated]
    out_rows = [builder.add(out, builder.mul(i, out_row)) for i in repeated]
    mask = _mask(builder, builder.sub(columns, _integer((vectors - 1) * LANES)))
    masks = [mask if v == vectors - 1 else None for v in range(vectors)]
    zero = ir.Constant(VECTOR, [0.0] * LANES)

    entry = builder.basic_block
    resume, loop, end = (builder.append_basic_block(name) for name in ("resume", "loop", "end"))
    builder.cbranch(add, resume, loop)
    builder.position_at_end(resume)
    before = {(i, v): _load(builder, out_rows[i], v, masks[v]) for i, v in tile}
    builder.branch(loop)

    builder.position_at_end(loop)
    starts = [(INT64, _integer(0), _integer(0)), (INT64, a, a), (INT64, b, b)]
    starts += [(VECTOR, zero, before[key]) for key in tile]
    state = [builder.phi(kind) for kind, _, _ in starts]
    for phi, (_, fresh, resumed) in zip(state, starts, strict=True):
        phi.add_incoming(fresh, entry)
        phi.add_incoming(resumed, resume)
    step, a_at, b_at = state[:3]
    sums = dict(zip(tile, state[3:], strict=True))
    factors = [_load(builder, b_at, v, masks[v]) for v in range(vectors)]
    fma = _declare(builder, "llvm.fma", VECTOR, VECTOR, VECTOR, VECTOR)
    for i in range(ROWS):
        pointer = builder.inttoptr(builder.add(a_at, a_offsets[i]), FLOAT.as_pointer())
        factor = _splat(builder, builder.load(pointer), VECTOR)
        for v in range(vectors):
            sums[i, v] = builder.call(fma, [factor, factors[v], sums[i, v]])
    step = builder.add(step, _integer(1))
    following = [step, builder.add(a_at, a_column), builder.add(b_at, b_row), *sums.values()]
    for phi, value in zip(state, following, strict=True):
        phi.add_incoming(value, loop)
    builder.cbranch(builder.icmp_signed("<", step, depth), loop, end)

    builder.position_at_end(end)
    for i, v in tile:
        _store(builder, sums[i, v], out_rows[i], v, masks[v])
    builder.ret_void()


def _integer(value: int) -> ir.Constant:
    return ir.Constant(INT64, value)


def _minimum(builder: ir.IRBuilder, one: ir.Value, other: ir.Value) -> ir.Value:
    return builder.select(builder.icmp_signed("<", one, other), one, other)


def _splat(builder: ir.IRBuilder, value: ir.Value, kind: ir.VectorType) -> ir.Value:
    undefined = ir.Constant(kind, ir.Undefined)
    single = builder.insert_element(undefined, value, ir.Constant(INT32, 0))
    return builder.shuffle_vector(single, undefined, ir.Constant(ir.VectorType(INT32, LANES), [0] * LANES))


def _mask(builder: ir.IRBuilder, columns: ir.Value) -> ir.Value:
    kind = ir.VectorType(INT64, LANES)
    return builder.icmp_signed("<", ir.Constant(kind, list(range(LANES))), _splat(builder, columns, kind))


def _declare(builder: ir.IRBuilder, name: str, result: ir.Type, *arguments: ir.Type) -> ir.Function:
    full = f"{name}.v{LANES}f32" + ("" if name == "llvm.fma" else ".p0")
    return cgutils.get_or_insert_function(builder.module, ir.FunctionType(result, arguments), full)


def _pointer(builder: ir.IRBuilder, row: ir.Value, vector: int) -> ir.Value:
    return builder.inttoptr(builder.add(row, _integer(4 * LANES * vector)), VECTOR.as_pointer())


def _load(builder: ir.IRBuilder, row: ir.Value, vector: int, mask: ir.Value | None) -> ir.Value:
    pointer = _pointer(builder, row, vector)
    if mask is None:
        return builder.load(pointer, align=4)
    load = _declare(builder, "llvm.masked.load", VECTOR, pointer.type, INT32, mask.type, VECTOR)
    return builder.call(load, [pointer, ir.Constant(INT32, 4), mask, ir.Constant(VECTOR, [0.0] * LANES)])


def _store(builder: ir.IRBuilder, value: ir.Value, row: ir.Value, vector: int, mask: ir.Value | None) -> None:
    pointer = _pointer(builder, row, vector)
    if mask is None:
        builder.store(value, pointer, align=4)
        return
    store = _declare(builder, "llvm.masked.store", ir.VoidType(), VECTOR, pointer.type, INT32, mask.type)
    builder.call(store, [value, pointer, ir.Constant(INT32, 4), mask])


_wide_tile, _narrow_tile = _tile(2), _tile(1)


def _product(a, b, out, add):  # type: ignore[no-untyped-def]
    """out = a @ b, or out += a @ b. a [n, k] with any strides, b [k, m] and out [n, m] with contiguous rows."""
    rows, columns = out.shape
    depth = a.shape[1]
    if depth == 0:
        if not add:
            out[:] = np.float32(0.0)
        return
    a_row, a_column = a.strides
    b_row, out_row = b.strides[0], out.strides[0]
    a_at, b_at, out_at = a.ctypes.data, b.ctypes.data, out.ctypes.data
    for j in range(0, columns, WIDTH):  # these columns of b stay in the nearest cache
        for i in range(0, rows, ROWS):
            corner = out_at + i * out_row + 4 * j
            n, m = min(ROWS, rows - i), columns - j
            if m > LANES:
                _wide_tile(a_at + i * a_row, a_row, a_column, b_at + 4 * j, b_row, corner, out_row, n, m, depth, add)
            else:
                _narrow_tile(a_at + i * a_row, a_row, a_column, b_at + 4 * j, b_row, corner, out_row, n, m, depth, add)


product = kernel(_product, types.void(MATRIX, MATRIX, MATRIX, types.boolean), **FUSED)
