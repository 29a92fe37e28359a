"""Steps that meet linear constraints: projections on half-spaces in the metric of the KL, for any number of them.

Everything is without units: lengths are those of the metric H in radii of the trust region, so that a step x has
x'Hx / 2 <= delta where its length is 1 at most.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

Array = NDArray[np.float64]
FAR = 1e6  # radii: as good as infinitely far


@dataclass(slots=True)
class HalfSpaces:
    """K constraints and the direction of the gain, all of length 1."""

    gain: Array  # [K] cosine between the gain's direction and that of each cost
    cost: Array  # [K, K] cosines between the costs' directions
    distance: Array  # [K] of each limit from here; above 0: violated

    def project(self, along: float) -> Array | None:
        """nu [K] of the point nearest to `along` times the gain's direction; None if no point meets all constraints.

        The point is along * gain - sum_k nu_k cost_k, with nu_k > 0 only where it lies on limit k.
        """
        return least_distance(self.cost, self.distance + along * self.gain)

    def length(self, along: float, nu: Array) -> float:
        """Of that point."""
        square = along * along - 2.0 * along * float(self.gain @ nu) + float(nu @ self.cost @ nu)
        return math.sqrt(max(square, 0.0))

    def recovery(self) -> Array:
        """nu [K] of the step of length 1 that lowers the violated costs: the sum of what each of them needs alone."""
        nu = np.maximum(self.distance, 0.0)
        length = self.length(0.0, nu)
        return nu / length if length > 0.0 else np.zeros_like(nu)


def half_spaces(q: float, r: Array, s: Array, c: Array, radius: float) -> HalfSpaces:
    """From q = g'H^-1 g, r = B H^-1 g [K], s = B H^-1 B' [K, K] and the violations c [K]."""
    tiny = np.finfo(np.float64).tiny
    size = np.sqrt(np.maximum(np.diag(s), tiny))
    gain = np.clip(r / size / np.sqrt(max(q, tiny)), -1.0, 1.0)
    # A cost that no step changes is infinitely far from its limit, on either side; one that is on it stays there.
    distance = np.where(c == 0.0, 0.0, np.clip(c / np.maximum(size * radius, tiny), -FAR, FAR))
    return HalfSpaces(gain, s / np.outer(size, size), distance)


def least_distance(gram: Array, beyond: Array) -> Array | None:
    """nu >= 0 [K] of the shortest x = -B'nu with beyond + B x <= 0, where gram = B B'; None if there is no such x.

    Lawson and Hanson's least distance programming: one non-negative least squares problem, of K unknowns. It does not
    mind constraints that say the same, and tells those that exclude one another.
    """
    if len(beyond) == 0:  # scipy's nnls would end the process
        return beyond
    values, vectors = np.linalg.eigh((gram + gram.T) / 2.0)
    root = vectors * np.sqrt(np.maximum(values, 0.0))  # [K, K], root root' = gram
    system = np.vstack((-root.T, beyond))
    target = np.append(np.zeros(len(beyond)), 1.0)
    u, _ = nnls(system, target)
    rest = 1.0 - float(beyond @ u)  # 1 / (1 + length^2)
    return None if rest < 2.0 / FAR**2 else u / rest
