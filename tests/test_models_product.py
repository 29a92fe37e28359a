"""The compiled matrix product against numpy's in double precision."""

from __future__ import annotations

import numpy as np
import pytest

from maip3o.models.compiled.product import LANES, ROWS, WIDTH, product


@pytest.mark.parametrize("rows", [0, 1, ROWS - 1, ROWS, 3 * ROWS + 1])
@pytest.mark.parametrize("columns", [1, LANES - 1, LANES, LANES + 1, WIDTH, 2 * WIDTH + LANES + 3])
@pytest.mark.parametrize("depth", [0, 1, 7])
@pytest.mark.parametrize("add", [False, True])
def test_product_of_any_shape_touches_nothing_else(rows: int, columns: int, depth: int, add: bool) -> None:
    rng = np.random.default_rng(0)
    frame = rng.standard_normal((rows + 2, columns + 2)).astype(np.float32)
    before, out = frame.copy(), frame[1:-1, 1:-1]
    a = rng.standard_normal((rows, depth)).astype(np.float32)
    b = rng.standard_normal((depth, columns + 5)).astype(np.float32)[:, :columns]
    right = before.astype(np.float64)
    right[1:-1, 1:-1] = a.astype(np.float64) @ b + (right[1:-1, 1:-1] if add else 0.0)
    product(a, b, out, add)
    np.testing.assert_allclose(frame, right, atol=1e-5)
    frame[:] = before
    product(np.asfortranarray(a), b, out, add)
    np.testing.assert_allclose(frame, right, atol=1e-5)
