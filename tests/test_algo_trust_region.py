"""CPO and PCPO: steps against a solver and by hand, Fisher products against Hessians, and what may go wrong."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize
from torch import Tensor

from maip3o.algo.algorithm import make_algorithm
from maip3o.algo.cpo import CPO, FREE, ON_LIMIT, RECOVERY
from maip3o.algo.finite import NonFiniteError
from maip3o.algo.steps.trust_region import Quadratic, conjugate_gradient, fisher_product, flat, line_search
from maip3o.algo.view import PolicyView
from maip3o.config.algorithms import TrustRegionSettings
from maip3o.config.schema import AlgoConfig
from tests.algo_case import make_actor, make_constraints, random_view

DELTA = 0.01
RADIUS = math.sqrt(2 * DELTA)
SETTINGS = TrustRegionSettings(delta=DELTA)


def solve(method: str, g: NDArray, B: NDArray, c: NDArray, H: NDArray) -> tuple[NDArray, int, CPO]:
    """Our step for max g.x with c + B x <= 0 and x'Hx / 2 <= DELTA."""
    algorithm = make_algorithm(AlgoConfig(method=method, settings={"delta": DELTA}), len(c))
    assert isinstance(algorithm, CPO)
    parts = (g, B, np.linalg.solve(H, g), np.linalg.solve(H, B.T).T)
    x, case = algorithm.step(Quadratic(*map(torch.as_tensor, parts), 0.0), torch.as_tensor(c))
    return x.numpy(), case, algorithm


def random_problem(rng: np.random.Generator, constraints: int) -> tuple[NDArray, NDArray, NDArray, NDArray]:
    """g, B, c, H of many sizes; limits from well inside the ball to out of reach."""
    root = rng.normal(size=(5, 5))
    H = root @ root.T + 0.1 * np.eye(5)
    g = rng.normal(size=5) * 10 ** rng.uniform(-3, 2)
    B = rng.normal(size=(constraints, 5)) * 10 ** rng.uniform(-3, 3, size=(constraints, 1))
    return g, B, 0.7 * RADIUS * rng.normal(size=constraints) * lengths(B, H), H


def lengths(B: NDArray, H: NDArray) -> NDArray:
    return np.sqrt(np.einsum("kn,nk->k", B, np.linalg.solve(H, B.T)))


def solver(objective: NDArray | None, near: NDArray, problem: tuple, ball: bool) -> NDArray | None:
    """scipy's answer: the greatest objective.x, or the point nearest to `near`; None if it finds nothing feasible."""
    _, B, c, H = problem
    size = lengths(B, H)
    constraints = [{"type": "ineq", "fun": lambda x: -(c + B @ x) / size, "jac": lambda x: -B / size[:, None]}]
    if ball:
        inside = {"type": "ineq", "fun": lambda x: 1.0 - x @ H @ x / (2 * DELTA), "jac": lambda x: -H @ x / DELTA}
        constraints.append(inside)
    found = []
    for start in (np.zeros(5), near):
        if objective is None:
            aim = (lambda x: 50.0 * (x - near) @ H @ (x - near), lambda x: 100.0 * H @ (x - near))
        else:
            unit = objective / np.linalg.norm(objective)
            aim = (lambda x, unit=unit: -unit @ x, lambda x, unit=unit: -unit)
        options = {"maxiter": 500, "ftol": 1e-15}
        answer = minimize(aim[0], start, jac=aim[1], constraints=constraints, method="SLSQP", options=options)
        if all(np.min(one["fun"](answer.x)) > -1e-6 for one in constraints):
            found.append((answer.fun, answer.x))
    return min(found, key=lambda pair: pair[0])[1] if found else None


@pytest.mark.parametrize("constraints", [1, 2, 3])
def test_cpo_takes_the_step_that_a_solver_finds(constraints: int) -> None:
    rng, cases = np.random.default_rng(constraints), set()
    for _ in range(30):
        problem = random_problem(rng, constraints)
        g, B, c, H = problem
        x, case, algorithm = solve("cpo", *problem)
        best = solver(g, x, problem, ball=True)
        cases.add(case)
        if case == RECOVERY:
            assert best is None
            assert x @ H @ x / 2 == pytest.approx(DELTA)
            continue
        assert best is not None
        assert np.max((c + B @ x) / lengths(B, H)) < 1e-7
        assert x @ H @ x / 2 <= DELTA * (1 + 1e-7)
        assert g @ x == pytest.approx(g @ best, rel=1e-4, abs=1e-6 * np.linalg.norm(g))
        # Stationary: g = B'nu + H x / t with nu >= 0, which is 0 off the limits.
        nu = algorithm.multiplier.double().numpy()
        assert np.all(nu[(c + B @ x) / lengths(B, H) < -1e-6] == 0)
        rest = g - nu @ B
        assert rest == pytest.approx(H @ x * (rest @ x) / (x @ H @ x), rel=1e-3, abs=1e-4 * np.linalg.norm(g))
    assert cases == {RECOVERY, ON_LIMIT, FREE}


@pytest.mark.parametrize("constraints", [1, 2, 3])
def test_pcpo_projects_as_a_solver_does(constraints: int) -> None:
    rng, cases = np.random.default_rng(constraints), set()
    for _ in range(25):
        problem = random_problem(rng, constraints)
        g, _, _, H = problem
        x, case, _ = solve("pcpo", *problem)
        plain = np.linalg.solve(H, g)
        plain *= RADIUS / math.sqrt(g @ plain)
        nearest = solver(None, plain, problem, ball=False)
        assert nearest is not None
        nearest /= max(math.sqrt(nearest @ H @ nearest) / RADIUS, 1.0)
        assert x == pytest.approx(nearest, abs=2e-4 * np.linalg.norm(plain))
        cases.add(case)
    assert cases == {ON_LIMIT, FREE}


BY_HAND = {
    # H = I, g = (1, 0), delta = .01, so the ball has radius sqrt(.02); b = (1, .2) unless it says otherwise.
    "the whole ball is safe": ((1.0, 0.2), -1.0, (RADIUS, 0.0), FREE),
    "only the limit counts": ((1.0, 0.0), -0.1, (0.1, 0.0), ON_LIMIT),  # of all steps to it the shortest
    "violated, within reach": ((1.0, 0.2), 0.02, (0.00823626, -0.14118132), ON_LIMIT),
    "violated, out of reach": ((1.0, 0.0), 1.0, (-RADIUS, 0.0), RECOVERY),
    "violated by just the radius": ((0.0, 2.0), 2 * RADIUS * (1 - 1e-12), (0.0, -RADIUS), ON_LIMIT),
    "gain along the limit": ((0.0, 1.0), 0.0, (RADIUS, 0.0), FREE),
    "gain straight against the limit": ((1.0, 0.0), 0.0, (0.0, 0.0), ON_LIMIT),
    "a cost that no step changes": ((0.0, 0.0), -1.0, (RADIUS, 0.0), FREE),
    "a violated cost that no step changes": ((0.0, 0.0), 1.0, (0.0, 0.0), RECOVERY),
}


@pytest.mark.parametrize("name", BY_HAND)
def test_cpo_by_hand(name: str) -> None:
    b, c, expected, case = BY_HAND[name]
    x, found, _ = solve("cpo", np.array([1.0, 0.0]), np.array([b]), np.array([c]), np.eye(2))
    assert found == case
    assert x == pytest.approx(expected, abs=2e-6)


def test_no_gain_but_a_violation_is_a_shortest_step_to_the_limit() -> None:
    x, case, _ = solve("cpo", np.zeros(2), np.array([[2.0, 0.0]]), np.array([0.1]), np.eye(2))
    assert case == ON_LIMIT
    assert x == pytest.approx((-0.05, 0.0), abs=1e-9)


def test_the_same_constraint_twice_is_one_constraint() -> None:
    g, b = np.array([1.0, 0.3]), np.array([[1.0, 0.2]])
    once, _, _ = solve("cpo", g, b, np.array([-0.02]), np.eye(2))
    twice, _, _ = solve("cpo", g, np.vstack((b, 3 * b)), np.array([-0.02, -0.06]), np.eye(2))
    assert twice == pytest.approx(once, abs=1e-6)


def test_constraints_that_exclude_each_other_are_recovered_from_together() -> None:
    B = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]])
    for method in ("cpo", "pcpo"):
        x, case, _ = solve(method, np.array([1.0, 0.0]), B, np.array([0.02, 0.01, 0.01]), np.eye(2))
        assert case == RECOVERY
        assert x == pytest.approx(np.array([-0.01, -0.01]) / math.sqrt(2e-4) * RADIUS)


def test_pcpo_far_from_its_limit_goes_the_length_of_the_ball() -> None:
    x, case, _ = solve("pcpo", np.array([1.0, 0.0]), np.array([[0.0, 1.0]]), np.array([500.0]), np.eye(2))
    assert case == ON_LIMIT
    assert x == pytest.approx((0.0, -RADIUS), abs=1e-4)


ACTORS = {
    "linear": {"observation": 2, "action": 2},
    "feed-forward": {"observation": 4, "action": 2, "hidden": (6, 5)},
    "GRU": {"observation": 3, "action": 2, "hidden": (4,), "recurrent": True, "memory_size": 3},
}


def view_of(kind: str, cost: float = 1.0, steps: int = 37, double: bool = True, **algo: object) -> PolicyView:
    actor = make_actor(**ACTORS[kind], std=0.5, double=double)
    with torch.no_grad():
        actor.head.weight.normal_(generator=torch.Generator().manual_seed(1))
    length = 5 if kind == "GRU" else 1
    return random_view(actor, steps, make_constraints([cost], [1.0]), AlgoConfig(**algo), chunk_length=length)  # type: ignore[arg-type]


def mean_kl(view: PolicyView) -> Tensor:
    with_graph = [view.evaluate(packed, twice=True) for packed in view.everything()]
    return torch.cat([sample.kl_to(sample.before) for sample in with_graph]).mean()


@pytest.mark.parametrize("kind", ACTORS)
def test_fisher_product_is_the_hessian_of_the_kl(kind: str) -> None:
    view = view_of(kind)
    gradient = flat(torch.autograd.grad(mean_kl(view), view.parameters, create_graph=True))
    rows = [flat(torch.autograd.grad(one, view.parameters, retain_graph=True)) for one in gradient]
    product = fisher_product(view, damping=0.0)
    ours = torch.stack([product(row) for row in torch.eye(len(gradient), dtype=gradient.dtype)])
    torch.testing.assert_close(ours, torch.stack(rows), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kind", ["feed-forward", "GRU"])
def test_fisher_product_is_the_slope_of_the_kls_gradient(kind: str) -> None:
    """By differences, and in the float32 of a run; the KL itself is v'Hv / 2."""
    view, exact = view_of(kind, double=False), view_of(kind)
    v = torch.as_tensor(np.random.default_rng(0).normal(size=sum(p.numel() for p in view.parameters)))
    product = fisher_product(exact, damping=0.1)(v)
    torch.testing.assert_close(fisher_product(view, damping=0.1)(v.float()).double(), product, rtol=1e-4, atol=1e-4)

    start, gradients, kls = flat(exact.parameters).detach(), [], []
    for sign in (-1.0, 1.0):
        torch.nn.utils.vector_to_parameters(start + sign * 1e-4 * v, exact.parameters)
        kl = mean_kl(exact)
        gradients.append(flat(torch.autograd.grad(kl, exact.parameters)))
        kls.append(float(kl.detach()))
    slope = (gradients[1] - gradients[0]) / 2e-4
    torch.testing.assert_close(slope + 0.1 * v, product, rtol=1e-6, atol=1e-6)
    assert np.mean(kls) / 1e-8 == pytest.approx(float(v @ slope) / 2, rel=1e-4)


def test_conjugate_gradients() -> None:
    rng = np.random.default_rng(0)
    root = torch.as_tensor(rng.normal(size=(6, 6)))
    H, b = root @ root.T + torch.eye(6), torch.as_tensor(rng.normal(size=6))
    for size in (1.0, 1e-9):  # what counts is the residual relative to b
        x, error = conjugate_gradient(lambda v: H @ v, size * b, 50)
        torch.testing.assert_close(x, size * torch.linalg.solve(H, b), rtol=1e-5, atol=0.0)
        assert error < 1e-6
    x, error = conjugate_gradient(lambda v: H @ v, b, 2)
    assert error == pytest.approx(float((H @ x - b).norm() / b.norm()))
    assert float(x @ H @ x) == pytest.approx(float(b @ x))
    x, error = conjugate_gradient(lambda v: -v, b, 50)  # not positive: nothing found, and it says so
    assert (float(x.abs().max()), error) == (0.0, 1.0)
    assert conjugate_gradient(lambda v: H @ v, torch.zeros(6), 50)[1] == 0.0


def updated(method: str, view: PolicyView, **settings: float) -> dict[str, float]:
    algorithm = make_algorithm(AlgoConfig(method=method, settings=settings), len(view.data.constraints.names))
    return algorithm.update(view, view.data)


@pytest.mark.parametrize("method", ["cpo", "pcpo"])
@pytest.mark.parametrize("kind", ACTORS)
@pytest.mark.parametrize("cost", [0.2, 0.99, 1.02, 30.0])
def test_an_update_keeps_the_ball_and_the_limit(method: str, kind: str, cost: float) -> None:
    view = view_of(kind, cost)
    metrics = updated(method, view)
    assert metrics["policy/rejected"] == 0.0
    assert metrics["policy/cg_error"] < 0.1
    assert 1e-4 < view.mean_kl() <= 1.5 * DELTA
    ratio = torch.exp(view.replay().log_prob - view.before.log_prob)
    change = float(((ratio - 1.0) * view.data.cost_advantage[:, 0]).mean())
    assert cost - 1.0 + change <= max(cost - 1.0, 0.0) + 1e-8
    assert cost < 1.0 or change < 0.0


@pytest.mark.parametrize("method", ["cpo", "pcpo"])
def test_a_line_search_that_finds_nothing_leaves_the_policy_as_it_was(method: str) -> None:
    view = view_of("feed-forward")
    before = [p.detach().clone() for p in view.parameters]
    view.data.advantage *= 1e6
    algorithm = make_algorithm(AlgoConfig(method=method), 1)
    algorithm.accept = lambda *args: False  # type: ignore[attr-defined]
    metrics = algorithm.update(view, view.data)
    assert (metrics["policy/rejected"], metrics["policy/line_search"], metrics["policy/steps"]) == (1.0, 0.0, 0.0)
    for one, other in zip(before, view.parameters, strict=True):
        assert torch.equal(one, other)


def test_a_step_whose_kl_overflows_is_not_taken() -> None:
    view = view_of("feed-forward", double=False)
    before = flat(view.parameters).detach().clone()
    seen: list[float] = []

    def accept(change: Tensor, kl: float) -> bool:
        seen.append(kl)
        return kl <= DELTA

    assert line_search(view, torch.full_like(before, 300.0), accept, SETTINGS) == 0
    assert not any(math.isfinite(kl) for kl in seen[:5])
    assert torch.equal(before, flat(view.parameters))


@pytest.mark.parametrize("method", ["cpo", "pcpo"])
def test_few_iterations_of_conjugate_gradients_still_give_a_safe_step(method: str) -> None:
    view = view_of("feed-forward", cost=1.02)
    metrics = updated(method, view, cg_iterations=1, damping=0.0)
    assert metrics["policy/cg_error"] > 0.1
    assert view.mean_kl() <= 1.5 * DELTA


@pytest.mark.parametrize("method", ["cpo", "pcpo"])
def test_no_advantage_at_all_is_no_step(method: str) -> None:
    view = view_of("feed-forward", cost=0.5)
    view.data.advantage[:], view.data.cost_advantage[:] = 0.0, 0.0
    metrics = updated(method, view)
    assert (metrics["policy/rejected"], metrics["policy/case"], metrics["policy/cg_error"]) == (1.0, FREE, 0.0)
    assert view.mean_kl() == 0.0


@pytest.mark.parametrize("method", ["cpo", "pcpo"])
def test_a_gradient_that_is_not_finite_refuses_the_update(method: str) -> None:
    view = view_of("feed-forward")
    view.data.advantage[3] = math.inf
    before = flat(view.parameters).detach().clone()
    with pytest.raises(NonFiniteError, match="gradients of the surrogates"):
        updated(method, view)
    assert torch.equal(before, flat(view.parameters))


def test_without_constraints_both_are_the_trust_region() -> None:
    steps = []
    for method in ("cpo", "pcpo"):
        actor = make_actor(**ACTORS["linear"])
        view = random_view(actor, 20, make_constraints([], []), AlgoConfig())
        updated(method, view)
        steps.append(flat(view.parameters).detach())
    torch.testing.assert_close(steps[0], steps[1])
