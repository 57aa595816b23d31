"""What the kernels for whole numbers need and numba has no words for, written in LLVM's own language.

A product of matrices is worked on tile by tile: as many sums as the processor's registers hold at once.
"""

from collections.abc import Callable, Sequence
from typing import Any

# A vector holds so many numbers of 32 bits; a tile of integer sums, and of float sums, so many rows.
LANES, ROWS, QUERIES = 16, 6, 8
# Vectors side by side in a tile of integer sums, and the columns that makes.
_VECTORS = 4
WIDTH = _VECTORS * LANES
_LINE = 4 * LANES

_Generate = Callable[[Any, Any, Any, Any], Any]


def instructions() -> dict[str, Any]:
    """Make functions for numba, by name. All but the last two take addresses, and distances in bytes.

    integer_tile(rows, row_bytes, weights, kind, start, n, sizes, size_bytes, sums, add)
        Sum products of ROWS rows of int16 or uint8 and WIDTH columns of weights, over n times 32 bits of each, from
        `start` on, and put the sums, by a size for each row and as floats, into `sums`; if `add`, to what is there.
        `kind` is an array of the weights' type.
    finish_tile(sums, sizes, biases, out, out_bytes)
        Write such sums, by a size for each column and with a bias, to `out`.
    float_tile(rows, row_bytes, columns, column_bytes, n, out, out_bytes)
        Write to `out` the sums of products of QUERIES rows of n floats and n rows of LANES floats.
    wide_float_tile(...)
        The same with twice as many columns.
    turn(rows, row_bytes, out, out_bytes)
        Write the transpose of LANES rows of as many floats.
    larger(float, float)
        The larger one, in a form that becomes vectors in a loop.
    float_of_bits(int32)
        The float with these bits.
    """
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils
    from numba.extending import intrinsic

    int32, int64, float32 = ir.IntType(32), ir.IntType(64), ir.FloatType()
    ints, floats = ir.VectorType(int32, LANES), ir.VectorType(float32, LANES)
    none = [floats([0.0] * LANES)]

    def place(builder: Any, address: Any, kind: Any, offset: int) -> Any:
        return builder.inttoptr(builder.add(address, int64(offset)), kind.as_pointer())

    def load(builder: Any, address: Any, kind: Any, offset: int = 0) -> Any:
        return builder.load(place(builder, address, kind, offset), align=4)

    def store(builder: Any, value: Any, address: Any, offset: int = 0) -> None:
        builder.store(value, place(builder, address, value.type, offset), align=4)

    def step(builder: Any, address: Any, n_bytes: Any, times: int) -> Any:
        return builder.add(address, builder.mul(n_bytes, int64(times)))

    def spread(builder: Any, value: Any) -> Any:
        """Put one number into all lanes."""
        empty = ir.Constant(ir.VectorType(value.type, LANES), ir.Undefined)
        one = builder.insert_element(empty, value, int32(0))
        return builder.shuffle_vector(one, empty, ints([0] * LANES))

    def library(builder: Any, name: str, kind: Any, n: int) -> Any:
        return cgutils.get_or_insert_function(builder.module, ir.FunctionType(kind, [kind] * n), name)

    def multiply_add(builder: Any, left: Any, right: Any, old: Any) -> Any:
        return builder.call(library(builder, f"llvm.fma.v{LANES}f32", floats, 3), (left, right, old))

    def procedure(generate: _Generate, *kinds: Any) -> tuple[Any, _Generate]:
        """Give what numba wants of an instruction that gives nothing back."""

        def wrapped(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            generate(context, builder, signature, values)
            return context.get_dummy_value()

        return types.void(*kinds), wrapped

    def sum_products(
        builder: Any,
        rows: tuple[Any, Any],
        columns: tuple[Any, Any],
        n: Any,
        begin: Sequence[Any],
        n_rows: int,
        add: Callable[[Any, Any, Any], Any],
    ) -> list[Any]:
        """Sum n products for each place of a tile.

        Parameters
        ----------
        rows, columns : address, and the distance of the next row; of rows, a product reads one number after the other,
            of columns, one row of vectors after the other
        begin : where the sums begin, row by row
        add : gives the new sums, of a vector of sums, a row's number in all lanes, and a vector of columns
        """
        kind, vectors = begin[0].type, len(begin) // n_rows
        before, loop, after = builder.block, builder.append_basic_block("sum"), builder.append_basic_block("summed")
        builder.branch(loop)
        builder.position_at_end(loop)
        i = builder.phi(int64)
        sums = [builder.phi(kind) for _ in begin]
        beside, along = (
            builder.add(address, builder.mul(i, n_bytes)) for address, n_bytes in (columns, (rows[0], int64(4)))
        )
        across = [load(builder, beside, kind, _LINE * vector) for vector in range(vectors)]
        found = []
        for row in range(n_rows):
            number = spread(builder, load(builder, step(builder, along, rows[1], row), kind.element))
            found += [add(sums[row * vectors + k], number, across[k]) for k in range(vectors)]
        following = builder.add(i, int64(1))
        builder.cbranch(builder.icmp_signed("<", following, n), loop, after)
        for phi, first, last in zip([i, *sums], [int64(0), *begin], [following, *found], strict=True):
            phi.add_incoming(first, before)
            phi.add_incoming(last, loop)
        builder.position_at_end(after)
        return found

    @intrinsic
    def integer_tile(
        typing: Any,
        rows: Any,
        row_bytes: Any,
        weights: Any,
        kind: Any,
        start: Any,
        n: Any,
        sizes: Any,
        size_bytes: Any,
        sums: Any,
        add: Any,
    ) -> Any:
        # Both multiply numbers that lie in 32 bits one by one, and add up the products: two of 16 bits, four of 8.
        name = {16: "vpdpwssd", 8: "vpdpbusd"}[kind.dtype.bitwidth]

        def generate(context: Any, builder: Any, signature: Any, values: Any) -> None:
            rows, row_bytes, weights, _, start, n, sizes, size_bytes, sums, add = values
            dot = library(builder, f"llvm.x86.avx512.{name}.512", ints, 3)
            found = sum_products(
                builder,
                (rows, row_bytes),
                (weights, int64(_LINE * _VECTORS)),
                n,
                [load(builder, start, ints, _LINE * k) for k in range(_VECTORS)] * ROWS,
                ROWS,
                lambda *numbers: builder.call(dot, numbers),
            )
            for row in range(ROWS):
                size = spread(builder, load(builder, step(builder, sizes, size_bytes, row), float32))
                for k in range(row * _VECTORS, (row + 1) * _VECTORS):
                    old = builder.select(add, load(builder, sums, floats, _LINE * k), *none)
                    store(builder, multiply_add(builder, builder.sitofp(found[k], floats), size, old), sums, _LINE * k)

        return procedure(generate, rows, row_bytes, weights, kind, start, n, sizes, size_bytes, sums, add)

    @intrinsic
    def finish_tile(typing: Any, sums: Any, sizes: Any, biases: Any, out: Any, out_bytes: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, values: Any) -> None:
            sums, sizes, biases, out, out_bytes = values
            size, bias = ([load(builder, of, floats, _LINE * k) for k in range(_VECTORS)] for of in (sizes, biases))
            for row in range(ROWS):
                for k in range(_VECTORS):
                    found = load(builder, sums, floats, _LINE * (row * _VECTORS + k))
                    scaled = multiply_add(builder, found, size[k], bias[k])
                    store(builder, scaled, step(builder, out, out_bytes, row), _LINE * k)

        return procedure(generate, sums, sizes, biases, out, out_bytes)

    def float_tile_of(vectors: int) -> Any:
        @intrinsic
        def float_tile(
            typing: Any, rows: Any, row_bytes: Any, columns: Any, column_bytes: Any, n: Any, out: Any, out_bytes: Any
        ) -> Any:
            def generate(context: Any, builder: Any, signature: Any, values: Any) -> None:
                rows, row_bytes, columns, column_bytes, n, out, out_bytes = values
                found = sum_products(
                    builder,
                    (rows, row_bytes),
                    (columns, column_bytes),
                    n,
                    none * (QUERIES * vectors),
                    QUERIES,
                    lambda old, number, vector: multiply_add(builder, number, vector, old),
                )
                for k, sums in enumerate(found):
                    store(builder, sums, step(builder, out, out_bytes, k // vectors), _LINE * (k % vectors))

            return procedure(generate, rows, row_bytes, columns, column_bytes, n, out, out_bytes)

        return float_tile

    @intrinsic
    def turn(typing: Any, rows: Any, row_bytes: Any, out: Any, out_bytes: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, values: Any) -> None:
            rows, row_bytes, out, out_bytes = values
            lines = [load(builder, step(builder, rows, row_bytes, i), floats) for i in range(LANES)]
            apart = 1
            while apart < LANES:
                # Of two lines that are so far apart, each takes half of the other's lanes.
                upper = ints([k if not k & apart else k - apart + LANES for k in range(LANES)])
                lower = ints([k + apart if not k & apart else k + LANES for k in range(LANES)])
                for i in range(LANES):
                    if not i & apart:
                        pair = lines[i], lines[i + apart]
                        lines[i], lines[i + apart] = (builder.shuffle_vector(*pair, mask) for mask in (upper, lower))
                apart *= 2
            for i, line in enumerate(lines):
                store(builder, line, step(builder, out, out_bytes, i))

        return procedure(generate, rows, row_bytes, out, out_bytes)

    @intrinsic
    def larger(typing: Any, left: Any, right: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            return builder.call(library(builder, "llvm.maxnum.f32", float32, 2), values, fastmath=("fast",))

        return types.float32(types.float32, types.float32), generate

    @intrinsic
    def float_of_bits(typing: Any, bits: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            return builder.bitcast(values[0], float32)

        return types.float32(types.int32), generate

    return {
        "integer_tile": integer_tile,
        "finish_tile": finish_tile,
        "float_tile": float_tile_of(1),
        "wide_float_tile": float_tile_of(2),
        "turn": turn,
        "larger": larger,
        "float_of_bits": float_of_bits,
    }
