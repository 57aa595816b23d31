"""What the kernels for whole numbers need and numba has no words for, written in LLVM's own language.

A product of matrices is worked on tile by tile: as many sums as the processor's registers hold at once.
"""

from collections.abc import Callable, Sequence
from typing import Any

# A vector holds so many numbers of 32 bits; a tile of integer sums, and of float sums, so many rows.
LANES, ROWS, QUERIES = 16, 6, 8
# Vectors side by side in a tile of integer sums, and the columns that makes: the sums of a chunk and those of all
# chunks fit into the registers together.
_VECTORS = 2
WIDTH = _VECTORS * LANES
_LINE = 4 * LANES

_Generate = Callable[[Any, Any, Any, Any], Any]


def instructions() -> dict[str, Any]:
    """Make functions for numba, by name.

    All but the last two take addresses, and distances in bytes. `kind` is an array of the type of steps.

    round_block(row, factors, depth, limits, kind, steps, sizes)
        Multiply a block of `depth` vectors by factors, and round it to whole numbers of steps. In 16 bits, what is in
        one lane is a chunk with a step size of its own, and 32 bits take two numbers of it; in 8 bits, all is one
        chunk, and they take four of a lane. `limits` are the most steps that a number may be, the largest norm of a
        chunk in steps, and what is added. Behind a block's steps there must be room for LANES vectors; what is there
        stays.
    integer_tile(rows, row_bytes, weights, kind, n_chunks, n, sizes, size_bytes, columns, column_bytes, out, out_bytes)
        Multiply ROWS rows of such steps by WIDTH columns of weights, and write the floats to `out`. A chunk has n times
        32 bits; its products are summed exactly, and the sum taken by the chunk's and the column's size. `columns` are
        those sizes, biases, and in 8 bits, for each chunk, where the sum begins.
    float_tile(rows, row_bytes, columns, column_bytes, n, out, out_bytes)
        Write to `out` the sums of products of QUERIES rows of n floats and n rows of LANES floats.
    wide_float_tile(...)
        The same with twice as many columns.
    turn(rows, row_bytes, out, out_bytes)
        Write the transpose of LANES rows of as many floats.
    shift_row(row, n, length, factor)
        Take from each float of a row of n vectors the largest of the first `length`, and multiply it by a factor. What
        comes behind those becomes very small.
    share_row(row, n)
        Divide each float of a row of n vectors by their sum.
    normalise_row(row, n, norm, epsilon, out)
        Do a layer norm of a row of n vectors: `norm` are its weights, and then its biases.
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
    none, lanes = [floats([0.0] * LANES)], ints(list(range(LANES)))

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

    def maximum(builder: Any, left: Any, right: Any) -> Any:
        function = library(builder, f"llvm.maxnum.v{LANES}f32", floats, 2)
        return builder.call(function, (left, right), fastmath=("nnan", "nsz"))

    def added(builder: Any, left: Any, right: Any) -> Any:
        return builder.fadd(left, right)

    def of_all(builder: Any, combine: Callable[[Any, Any, Any], Any], vector: Any) -> Any:
        """Combine the numbers of a vector, and put what that gives into all lanes."""
        for apart in (8, 4, 2, 1):
            other = builder.shuffle_vector(vector, vector, ints([k ^ apart for k in range(LANES)]))
            vector = combine(builder, vector, other)
        return vector

    def turned(builder: Any, lines: Sequence[Any]) -> list[Any]:
        """Transpose as many vectors as they have lanes."""
        lines, apart = list(lines), 1
        while apart < LANES:
            # Of two lines that are so far apart, each takes half of the other's lanes.
            upper = ints([k if not k & apart else k - apart + LANES for k in range(LANES)])
            lower = ints([k + apart if not k & apart else k + LANES for k in range(LANES)])
            for i in range(LANES):
                if not i & apart:
                    pair = lines[i], lines[i + apart]
                    lines[i], lines[i + apart] = (builder.shuffle_vector(*pair, mask) for mask in (upper, lower))
            apart *= 2
        return lines

    def procedure(generate: _Generate, *kinds: Any) -> tuple[Any, _Generate]:
        """Give what numba wants of an instruction that gives nothing back."""

        def wrapped(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            generate(context, builder, signature, values)
            return context.get_dummy_value()

        return types.void(*kinds), wrapped

    def repeat(
        builder: Any, n: Any, begin: Sequence[Any], work: Callable[[Any, Sequence[Any]], list[Any]]
    ) -> list[Any]:
        """Do work n times, at least once: it takes the number of the turn and what the turn before gave."""
        before, loop, after = builder.block, builder.append_basic_block("loop"), builder.append_basic_block("after")
        builder.branch(loop)
        builder.position_at_end(loop)
        phis = [builder.phi(first.type) for first in (int64(0), *begin)]
        found = [builder.add(phis[0], int64(1)), *work(phis[0], phis[1:])]
        for phi, first, last in zip(phis, [int64(0), *begin], found, strict=True):
            phi.add_incoming(first, before)
            phi.add_incoming(last, builder.block)
        builder.cbranch(builder.icmp_signed("<", found[0], n), loop, after)
        builder.position_at_end(after)
        return found[1:]

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

        def add_products(i: Any, sums: Sequence[Any]) -> list[Any]:
            beside, along = (builder.add(of, builder.mul(i, n_bytes)) for of, n_bytes in (columns, (rows[0], int64(4))))
            across = [load(builder, beside, kind, _LINE * vector) for vector in range(vectors)]
            found = []
            for row in range(n_rows):
                number = spread(builder, load(builder, step(builder, along, rows[1], row), kind.element))
                found += [add(sums[row * vectors + k], number, across[k]) for k in range(vectors)]
            return found

        return repeat(builder, n, begin, add_products)

    @intrinsic
    def round_block(
        typing: Any, row: Any, factors: Any, depth: Any, limits: Any, kind: Any, steps: Any, sizes: Any
    ) -> Any:
        bits = kind.dtype.bitwidth

        def generate(context: Any, builder: Any, signature: Any, values: Any) -> None:
            row, factors, depth, limits, _, steps, sizes = values
            most, norm, offset = (spread(builder, builder.extract_value(limits, i)) for i in range(3))

            def numbers(i: Any) -> Any:
                own, factor = (load(builder, step(builder, address, i, _LINE), floats) for address in (row, factors))
                return builder.fmul(own, factor)

            def look(i: Any, found: Sequence[Any]) -> list[Any]:
                number = numbers(i)
                size = builder.call(library(builder, f"llvm.fabs.v{LANES}f32", floats, 1), (number,))
                return [maximum(builder, found[0], size), multiply_add(builder, number, number, found[1])]

            top, square = repeat(builder, depth, none * 2, look)
            if bits == 8:
                top = of_all(builder, maximum, top)
            long = builder.call(library(builder, f"llvm.sqrt.v{LANES}f32", floats, 1), (square,))
            size = maximum(builder, builder.fdiv(top, most), builder.fdiv(long, norm))
            size = maximum(builder, size, floats([1e-30] * LANES))
            store(builder, size if bits == 16 else builder.extract_element(size, int32(0)), sizes)
            per_size = builder.fdiv(floats([1.0] * LANES), size)
            times = 32 // bits

            def pack(i: Any, _: Sequence[Any]) -> list[Any]:
                line = ints([0] * LANES)
                for k in range(times):
                    number = numbers(builder.add(builder.mul(i, int64(times)), int64(k)))
                    scaled = multiply_add(builder, number, per_size, offset)
                    whole = builder.call(library(builder, f"llvm.rint.v{LANES}f32", floats, 1), (scaled,))
                    low = builder.and_(builder.fptosi(whole, ints), ints([2**bits - 1] * LANES))
                    line = builder.or_(line, builder.shl(low, ints([bits * k] * LANES)))
                store(builder, line, builder.add(steps, builder.mul(i, int64(_LINE))))
                return []

            n_lines = builder.udiv(depth, int64(times))
            repeat(builder, n_lines, [], pack)
            if bits == 16:
                # From lines to chunks, which are no longer than there are lines; what is behind them stays.
                lines = [load(builder, steps, ints, _LINE * i) for i in range(LANES)]
                is_own = builder.icmp_unsigned("<", lanes, spread(builder, builder.trunc(n_lines, int32)))
                for i, chunk in enumerate(turned(builder, lines)):
                    to = step(builder, steps, builder.mul(n_lines, int64(4)), i)
                    store(builder, builder.select(is_own, chunk, load(builder, to, ints)), to)

        return procedure(generate, row, factors, depth, limits, kind, steps, sizes)

    @intrinsic
    def integer_tile(
        typing: Any,
        rows: Any,
        row_bytes: Any,
        weights: Any,
        kind: Any,
        n_chunks: Any,
        n: Any,
        sizes: Any,
        size_bytes: Any,
        columns: Any,
        column_bytes: Any,
        out: Any,
        out_bytes: Any,
    ) -> Any:
        # Both multiply numbers that lie in 32 bits one by one, and add up the products: two of 16 bits, four of 8.
        bits = kind.dtype.bitwidth
        name = {16: "vpdpwssd", 8: "vpdpbusd"}[bits]

        def generate(context: Any, builder: Any, signature: Any, values: Any) -> None:
            rows, row_bytes, weights, _, n_chunks, n, *values = values
            sizes, size_bytes, columns, column_bytes, out, out_bytes = values
            dot = library(builder, f"llvm.x86.avx512.{name}.512", ints, 3)

            def of_columns(line: Any, kind: Any) -> list[Any]:
                beside = builder.add(columns, builder.mul(column_bytes, line))
                return [load(builder, beside, kind, _LINE * k) for k in range(_VECTORS)]

            def add_chunk(c: Any, totals: Sequence[Any]) -> list[Any]:
                begin = builder.mul(c, n)
                start = of_columns(builder.add(c, int64(2)), ints) if bits == 8 else [ints([0] * LANES)] * _VECTORS
                found = sum_products(
                    builder,
                    (step(builder, rows, begin, 4), row_bytes),
                    (step(builder, weights, begin, 4 * WIDTH), int64(4 * WIDTH)),
                    n,
                    start * ROWS,
                    ROWS,
                    lambda *numbers: builder.call(dot, numbers),
                )
                beside = builder.add(sizes, builder.mul(c, int64(4)))
                of_row = [
                    spread(builder, load(builder, step(builder, beside, size_bytes, row), float32))
                    for row in range(ROWS)
                ]
                return [
                    multiply_add(builder, builder.sitofp(sums, floats), of_row[k // _VECTORS], total)
                    for k, (sums, total) in enumerate(zip(found, totals, strict=True))
                ]

            totals = repeat(builder, n_chunks, none * (ROWS * _VECTORS), add_chunk)
            size, bias = (of_columns(int64(i), floats) for i in range(2))
            for k, total in enumerate(totals):
                row, vector = divmod(k, _VECTORS)
                scaled = multiply_add(builder, total, size[vector], bias[vector])
                store(builder, scaled, step(builder, out, out_bytes, row), _LINE * vector)

        kinds = (row_bytes, weights, kind, n_chunks, n, sizes, size_bytes)
        return procedure(generate, rows, *kinds, columns, column_bytes, out, out_bytes)

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
            for i, line in enumerate(turned(builder, lines)):
                store(builder, line, step(builder, out, out_bytes, i))

        return procedure(generate, rows, row_bytes, out, out_bytes)

    @intrinsic
    def shift_row(typing: Any, row: Any, n: Any, length: Any, factor: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, values: Any) -> None:
            row, n, length, factor = values
            ends, factors = spread(builder, builder.trunc(length, int32)), spread(builder, factor)

            def look(i: Any, found: Sequence[Any]) -> list[Any]:
                at = step(builder, row, i, _LINE)
                places = builder.add(spread(builder, builder.trunc(builder.mul(i, int64(LANES)), int32)), lanes)
                is_inside = builder.icmp_signed("<", places, ends)
                numbers = builder.select(is_inside, load(builder, at, floats), floats([-1e30] * LANES))
                store(builder, numbers, at)
                return [maximum(builder, found[0], numbers)]

            (top,) = repeat(builder, n, [floats([-1e30] * LANES)], look)
            top = of_all(builder, maximum, top)

            def shift(i: Any, _: Sequence[Any]) -> list[Any]:
                at = step(builder, row, i, _LINE)
                store(builder, builder.fmul(builder.fsub(load(builder, at, floats), top), factors), at)
                return []

            repeat(builder, n, [], shift)

        return procedure(generate, row, n, length, factor)

    @intrinsic
    def share_row(typing: Any, row: Any, n: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, values: Any) -> None:
            row, n = values

            def look(i: Any, found: Sequence[Any]) -> list[Any]:
                return [added(builder, found[0], load(builder, step(builder, row, i, _LINE), floats))]

            (total,) = repeat(builder, n, none, look)
            per_total = builder.fdiv(floats([1.0] * LANES), of_all(builder, added, total))

            def scale(i: Any, _: Sequence[Any]) -> list[Any]:
                at = step(builder, row, i, _LINE)
                store(builder, builder.fmul(load(builder, at, floats), per_total), at)
                return []

            repeat(builder, n, [], scale)

        return procedure(generate, row, n)

    @intrinsic
    def normalise_row(typing: Any, row: Any, n: Any, norm: Any, epsilon: Any, out: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, values: Any) -> None:
            row, n, norm, epsilon, out = values
            count = spread(builder, builder.sitofp(builder.mul(n, int64(LANES)), float32))
            biases = step(builder, norm, n, _LINE)

            def mean_of(change: Callable[[Any], Any]) -> Any:
                def look(i: Any, found: Sequence[Any]) -> list[Any]:
                    return [added(builder, found[0], change(load(builder, step(builder, row, i, _LINE), floats)))]

                (total,) = repeat(builder, n, none, look)
                return builder.fdiv(of_all(builder, added, total), count)

            def square(number: Any) -> Any:
                apart = builder.fsub(number, mean)
                return builder.fmul(apart, apart)

            mean = mean_of(lambda number: number)
            variance = added(builder, mean_of(square), spread(builder, epsilon))
            deviation = builder.call(library(builder, f"llvm.sqrt.v{LANES}f32", floats, 1), (variance,))
            per_deviation = builder.fdiv(floats([1.0] * LANES), deviation)

            def scale(i: Any, _: Sequence[Any]) -> list[Any]:
                own, weight, bias = (load(builder, step(builder, of, i, _LINE), floats) for of in (row, norm, biases))
                scaled = builder.fmul(builder.fsub(own, mean), per_deviation)
                store(builder, multiply_add(builder, scaled, weight, bias), step(builder, out, i, _LINE))
                return []

            repeat(builder, n, [], scale)

        return procedure(generate, row, n, norm, epsilon, out)

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
        "round_block": round_block,
        "integer_tile": integer_tile,
        "float_tile": float_tile_of(1),
        "wide_float_tile": float_tile_of(2),
        "turn": turn,
        "shift_row": shift_row,
        "share_row": share_row,
        "normalise_row": normalise_row,
        "larger": larger,
        "float_of_bits": float_of_bits,
    }
