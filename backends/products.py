"""Products of many rows with one vector, as fast as one thread reads them, and each the same whatever lies beside it.

One matrix product over all rows would be split over threads, which on a busy machine wait for each other, and its
rounding of a row would depend on how many rows there are. A product a row spends more on the call than on the numbers.
So it is made in blocks of a fixed number of rows, few enough for the library to keep them on this thread; every row is
in a whole block, and all blocks are alike.
"""

import numpy as np

from backends.base import Vector, Vectors

_ONE_THREAD = 9216  # numbers in a matrix up to which OpenBLAS multiplies it with a vector on the calling thread
_LANES = 4  # rows that it takes together


def products(rows: Vectors, start: int, stop: int, vector: Vector) -> Vector:
    """The product of each row from start to stop with the vector."""
    dim = vector.size
    block = max(_LANES, _ONE_THREAD // dim // _LANES * _LANES)
    if len(rows) < block:
        found: Vector = np.vecdot(rows[start:stop], vector)
        return found
    whole = (stop - start) // block * block
    found = np.empty(stop - start, dtype=np.float32)
    np.matmul(rows[start : start + whole].reshape(-1, block, dim), vector, out=found[:whole].reshape(-1, block))
    if whole < stop - start:
        end = max(stop, block)  # the last block overlaps the one before it, or reaches beyond what was asked for
        found[whole:] = (rows[end - block : end] @ vector)[start + whole - end + block : stop - end + block]
    return found
