"""Record what OmniSafe 0.5 computes, for tests/test_algo_omnisafe.py: inputs and outputs in tests/data/omnisafe.npz.

Its own classes run, without an environment: an actor, a batch of made-up steps, and a logger that knows J_C. In a
virtual environment of its own (Python 3.11, torch, "numpy<2", gymnasium==0.28.1, mujoco==2.3.3,
gymnasium-robotics==1.2.2, and --no-deps safety-gymnasium==1.0.0 omnisafe==0.5.0):

python tests/record_omnisafe.py
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from gymnasium.spaces import Box
from omnisafe.algorithms.on_policy import CPO, CPPOPID, CUP, FOCOPS, IPO, P3O, PCPO, PPO, PPOLag
from omnisafe.common.buffer import OnPolicyBuffer
from omnisafe.common.lagrange import Lagrange
from omnisafe.common.pid_lagrange import PIDLagrangian
from omnisafe.models.actor.gaussian_learning_actor import GaussianLearningActor
from torch.distributions import Normal

STEPS, OBSERVATION, ACTION, HIDDEN = 48, 5, 3, (8, 8)
LIMIT = 25.0
MULTIPLIER = 0.7
SETTINGS: dict[str, Any] = {
    "clip": 0.2, "entropy_coef": 0.0, "gamma": 0.99, "lam": 0.95, "cost_limit": LIMIT, "kappa": 20.0,
    "focops_lam": 1.5, "focops_eta": 0.02, "target_kl": 0.01, "cg_damping": 0.1, "cg_iters": 60,
    "fvp_sample_freq": 1, "penalty_max": 1.0, "use_max_grad_norm": False, "max_grad_norm": 40.0,
}  # fmt: skip


class Logger:
    """J_C for the losses, which read it here; everything else is dropped."""

    def __init__(self, cost: float) -> None:
        self.cost = cost

    def get_stats(self, key: str) -> tuple[float, ...]:
        assert key == "Metrics/EpCost"
        return (self.cost,)

    def store(self, *args: Any, **kwargs: Any) -> None: ...

    def log(self, *args: Any, **kwargs: Any) -> None: ...


def make(kind: type, actor: torch.nn.Module, cost: float, **changes: Any) -> Any:
    """An algorithm of OmniSafe's without environment, buffer and critics."""
    algorithm = object.__new__(kind)
    algorithm._cfgs = SimpleNamespace(algo_cfgs=SimpleNamespace(**{**SETTINGS, **changes}))
    algorithm._logger, algorithm._device = Logger(cost), torch.device("cpu")
    algorithm._actor_critic = SimpleNamespace(actor=actor, zero_grad=actor.zero_grad)
    algorithm._lagrange = SimpleNamespace(lagrangian_multiplier=torch.tensor(MULTIPLIER))
    return algorithm


def make_actor(rng: np.random.Generator) -> GaussianLearningActor:
    spaces = [Box(-np.inf, np.inf, (n,)) for n in (OBSERVATION, ACTION)]
    actor = GaussianLearningActor(*spaces, hidden_sizes=list(HIDDEN), activation="tanh")
    move(actor, rng, 0.3)
    return actor


@torch.no_grad()
def move(actor: torch.nn.Module, rng: np.random.Generator, size: float) -> None:
    for parameter in actor.parameters():
        parameter += size * torch.as_tensor(rng.normal(size=parameter.shape))


def weights(actor: torch.nn.Module, name: str) -> dict[str, np.ndarray]:
    return {f"{name}.{key}": value.numpy().copy() for key, value in actor.state_dict().items()}


def flat_gradient(actor: torch.nn.Module, loss: torch.Tensor) -> np.ndarray:
    gradients = torch.autograd.grad(loss, list(actor.parameters()))
    return torch.cat([g.reshape(-1) for g in gradients]).numpy()


def record_losses(actor: Any, batch: dict[str, torch.Tensor], old: Normal) -> dict[str, Any]:
    """Loss and gradient at the moved policy, for J_C on both sides of the limit."""
    out: dict[str, Any] = {}
    steps = [batch[key] for key in ("obs", "act", "logp")]
    reward, cost = batch["adv_r"], batch["adv_c"]

    def note(name: str, loss: torch.Tensor) -> None:
        out[f"{name}.loss"], out[f"{name}.gradient"] = loss.item(), flat_gradient(actor, loss)

    note("ppo", make(PPO, actor, 0.0)._loss_pi(*steps, reward))
    lagrangian = make(PPOLag, actor, 0.0)
    note("ppo_lagrangian", lagrangian._loss_pi(*steps, lagrangian._compute_adv_surrogate(reward, cost)))
    pid = make(CPPOPID, actor, 0.0)
    pid._lagrange.lagrangian_multiplier = MULTIPLIER
    note("cppo_pid", pid._loss_pi(*steps, pid._compute_adv_surrogate(reward, cost)))
    focops = make(FOCOPS, actor, 0.0)
    focops._p_dist = old
    note("focops", focops._loss_pi(*steps, focops._compute_adv_surrogate(reward, cost)))
    cup = make(CUP, actor, 0.0)
    cup._p_dist = old
    note("cup", cup._loss_pi_cost(*steps, cost))
    for j_c in (24.0, 25.001, 30.0):
        p3o = make(P3O, actor, j_c)
        note(f"p3o.{j_c}", p3o._loss_pi(*steps, reward) + p3o._loss_pi_cost(*steps, cost))
        ipo = make(IPO, actor, j_c, kappa=0.01)
        note(f"ipo.{j_c}", ipo._loss_pi(*steps, ipo._compute_adv_surrogate(reward, cost)))
    return out


def record_multipliers(costs: np.ndarray) -> dict[str, Any]:
    lagrange = Lagrange(LIMIT, 0.001, 0.035, "Adam")
    bounded = Lagrange(LIMIT, 0.001, 0.035, "Adam", 0.2)
    pid = PIDLagrangian(0.1, 0.01, 0.01, 10, 0.95, 0.95, True, False, 100, 0.001, LIMIT)
    series: dict[str, list[float]] = {"adam": [], "adam_bounded": [], "pid": []}
    for cost in costs:
        for rule, name in ((lagrange, "adam"), (bounded, "adam_bounded")):
            rule.update_lagrange_multiplier(float(cost))
            series[name].append(rule.lagrangian_multiplier.item())
        pid.pid_update(float(cost))
        series["pid"].append(pid.lagrangian_multiplier)
    return {f"multiplier.{name}": np.array(values) for name, values in series.items()}


def record_trust_region(actor: Any, batch: dict[str, torch.Tensor], rng: np.random.Generator) -> dict[str, Any]:
    """Gradients, Fisher products and the whole step before the line search, at the policy that sampled."""
    data = [batch[key] for key in ("obs", "act", "logp", "adv_r", "adv_c")]
    out: dict[str, Any] = {}
    cpo = make(CPO, actor, LIMIT)
    cpo._fvp_obs = batch["obs"]
    vector = torch.as_tensor(rng.normal(size=sum(p.numel() for p in actor.parameters())))
    out["fisher.vector"], out["fisher.product"] = vector.numpy(), cpo._fvp(vector).numpy()
    out["reward_gradient"] = -flat_gradient(actor, cpo._loss_pi(*data[:4]))
    out["cost_gradient"] = flat_gradient(actor, cpo._loss_pi_cost(*data[:3], data[4]))
    for kind, name in ((CPO, "cpo"), (PCPO, "pcpo")):
        for violation in (-1.0, -0.01, -0.002, 0.01, 1.0):
            algorithm = make(kind, actor, LIMIT + violation)
            seen: dict[str, Any] = {}

            def search(seen: dict[str, Any] = seen, **given: Any) -> tuple[torch.Tensor, int]:
                seen.update(given)
                return torch.zeros_like(given["step_direction"]), 0

            def direction(original: Any = algorithm._step_direction, seen: dict[str, Any] = seen, **given: Any) -> Any:
                seen.update(given)
                return original(**given)

            algorithm._cpo_search_step, algorithm._step_direction = search, direction
            algorithm._update_actor(*data)
            out[f"{name}.{violation}.step"] = seen["step_direction"].numpy()
            if kind is CPO:
                out[f"{name}.{violation}.case"] = seen["optim_case"]
                out["natural_gain"], out["natural_cost"] = seen["x"].numpy(), seen["p"].numpy()
    return out


def record_advantages(rng: np.random.Generator) -> dict[str, Any]:
    """Two episodes of one buffer: one ends, one is cut and bootstrapped. GAE, and its scaling."""
    size = 12
    spaces = [Box(-np.inf, np.inf, (1,)) for _ in range(2)]
    buffer = OnPolicyBuffer(*spaces, size, 0.99, 0.95, 0.9, "gae", 0.0, True, True, torch.device("cpu"))
    names = ("reward", "value_r", "cost", "value_c")
    rows = {name: rng.normal(size=size).astype(np.float32) for name in names}
    last = rng.normal(size=2).astype(np.float32)
    for t in range(size):
        given = {name: torch.as_tensor(rows[name][t]) for name in names}
        buffer.store(obs=torch.zeros(1), act=torch.zeros(1), logp=torch.zeros(()), **given)
        if t == 4:
            buffer.finish_path()
    buffer.finish_path(*(torch.as_tensor(v).reshape(1) for v in last))
    raw = {f"gae.raw_{key}": buffer.data[key].numpy().copy() for key in ("adv_r", "adv_c", "target_value_r")}
    scaled = buffer.get()
    out = {f"gae.{name}": rows[name] for name in names} | {"gae.last": last} | raw
    return out | {f"gae.{key}": scaled[key].numpy() for key in ("adv_r", "adv_c")}


def main() -> None:
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    actor = make_actor(rng)
    out: dict[str, Any] = weights(actor, "before")
    batch = {"obs": torch.as_tensor(rng.normal(size=(STEPS, OBSERVATION)))}
    with torch.no_grad():
        before = actor(batch["obs"])
        old = Normal(before.mean, before.stddev)
        batch["act"] = before.mean + before.stddev * torch.as_tensor(rng.normal(size=(STEPS, ACTION)))
        batch["logp"] = old.log_prob(batch["act"]).sum(-1)
    batch["adv_r"] = torch.as_tensor(rng.normal(size=STEPS))
    batch["adv_c"] = torch.as_tensor(rng.normal(size=STEPS))
    batch["adv_c"] -= batch["adv_c"].mean()
    out |= {f"batch.{key}": value.numpy() for key, value in batch.items()}
    out |= record_trust_region(actor, batch, rng)
    move(actor, rng, 0.035)
    out |= weights(actor, "after") | record_losses(actor, batch, old)
    costs = np.concatenate((np.full(8, 60.0), np.full(25, 20.0), rng.uniform(0, 60, 30)))
    out |= {"costs": costs} | record_multipliers(costs)
    torch.set_default_dtype(torch.float32)  # theirs sums float64 rewards in place, and then takes the sums for rewards
    out |= record_advantages(rng)
    path = Path(__file__).parent / "data" / "omnisafe.npz"
    np.savez_compressed(path, **out)
    print(f"{path}: {path.stat().st_size / 1000:.0f} kB, {len(out)} arrays")


if __name__ == "__main__":
    main()
