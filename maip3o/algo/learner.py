"""The learner: networks, optimisers and normalisers, and one update from a list of episodes."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from maip3o.algo.algorithm import make_algorithm
from maip3o.algo.bound import theorem2_bound
from maip3o.algo.constraints import Constraints, penalty_weight
from maip3o.algo.critic_update import CriticData, update_critics
from maip3o.algo.diagnostics import constraint_diagnostics
from maip3o.algo.finite import NonFiniteError, require_finite
from maip3o.algo.losses import explained_variance, scale_advantage
from maip3o.algo.view import PolicyData, PolicyView, mean_kl
from maip3o.config.schema import Config, alpha_of
from maip3o.data.batch import Batch, make_batch
from maip3o.data.chunks import cut_into_chunks
from maip3o.data.cost_estimate import estimate_costs, unit_factor
from maip3o.data.episode import Episode
from maip3o.data.returns import Returns, compute_returns
from maip3o.envs.contract import WorldSpec
from maip3o.models.actor import Actor, entropy
from maip3o.models.critic import Critic, critic_inputs
from maip3o.models.normaliser import ObservationNormaliser

__all__ = ["Learner", "NonFiniteError"]
BLOCK_ROWS = 2048
COMPETENCE_DECAY = 0.98  # per iteration: it remembers some fifty


class Learner:
    """Everything that learns. An update is a function of (this state, config.seed, iteration, episodes)."""

    def __init__(self, config: Config, world: WorldSpec, device: torch.device | str = "cpu") -> None:
        self.config, self.algo, self.device = config, config.algo, torch.device(device)
        self.sizes = {"observation": world.observation_size, "action": world.action_size}
        self.constraints = list(config.constraints)
        self.algorithm = make_algorithm(config.algo, len(self.constraints))
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(config.seed)
            self.actor = Actor(world, config.model).to(self.device)
            names = ["value", *self.constraints]
            self.critics = {name: Critic(world.observation_size, config.model).to(self.device) for name in names}
        self.normaliser = ObservationNormaliser(world.observation_size, config.model.normalise_observation).to(
            self.device
        )
        self.actor_optimiser = torch.optim.Adam(self.actor.parameters(), lr=self.algo.lr, eps=1e-5, fused=True)
        parameters = [p for critic in self.critics.values() for p in critic.parameters()]
        self.critic_optimiser = torch.optim.Adam(parameters, lr=self.algo.critic_lr, eps=1e-5, fused=True)
        self.competence = 0.0  # moving average of the share of lives that reach their goal
        self.iteration = 0

    def update(self, episodes: Sequence[Episode], progress: float = 0.0) -> dict[str, float]:
        """Learn from one iteration's episodes; returns its metrics. progress in [0, 1] drives the schedule.

        Raises NonFiniteError, and leaves everything as it was, if NaN or infinity turns up anywhere.
        """
        before = _copy(self.state_dict())
        try:
            return self._update(make_batch(episodes, self.device), progress)
        except NonFiniteError as error:
            error.iteration = self.iteration
            self.load_state_dict(before)
            stored = [dataclasses.asdict(episode) for episode in episodes]
            error.dump = {"learner": before, "episodes": stored, "progress": progress, "tensor": error.tensor}
            raise
        except BaseException:
            self.load_state_dict(before)
            raise

    def _update(self, batch: Batch, progress: float) -> dict[str, float]:
        self._require_finite_batch(batch)
        rng = np.random.default_rng([self.config.seed, self.iteration])
        lr_factor = 1.0 - progress if self.algo.lr_schedule == "linear" else 1.0
        self._set_lr(self.actor_optimiser, self.algo.lr * lr_factor)
        self._set_lr(self.critic_optimiser, self.algo.critic_lr * lr_factor)

        observation = self.normaliser(batch.observation)
        value, final_value = self._values(observation, batch)
        returns = compute_returns(batch, value, final_value, self.algo)
        self.competence = self._competence(batch)
        constraints, metrics = self._estimate_constraints(batch, progress)
        data = self._policy_data(batch, observation, returns, constraints)
        critic_data = self._critic_data(batch, observation, returns)
        metrics |= self._critic_metrics(value, returns)
        # Neither sees what the other changes, so a second core may as well do the critics.
        with ThreadPoolExecutor(1) as side:
            critics = side.submit(
                update_critics, self.critics, self.critic_optimiser, critic_data, self.algo, rng.spawn(1)[0]
            )
            metrics |= self._train_policy(data, returns, batch, rng)
            metrics |= critics.result()
        self.normaliser.update(batch.observation)
        require_finite(self._named_tensors())
        self.iteration += 1
        return {**metrics, "policy/lr": self.algo.lr * lr_factor, "policy/competence": self.competence}

    def _train_policy(
        self, data: PolicyData, returns: Returns, batch: Batch, rng: np.random.Generator
    ) -> dict[str, float]:
        chunks = cut_into_chunks(batch, self.algo.chunk_length if self.config.model.recurrent else 1)
        view = PolicyView(self.actor, self.actor_optimiser, data, chunks, self.algo, rng)
        metrics = {"policy/max_ratio_error": view.max_ratio_error()}
        metrics |= constraint_diagnostics(view, self.algorithm)
        metrics |= self.algorithm.update(view, data)
        after, before = view.replay(), view.before
        kl = mean_kl(after, before)
        ratio = torch.exp(after.log_prob - before.log_prob).double().cpu().numpy()
        metrics |= theorem2_bound(kl, ratio, returns, data, self.algorithm)
        return {
            **metrics,
            "policy/kl": kl,
            "policy/entropy": float(entropy(after.log_std)),
            "policy/std": float(after.log_std.exp().mean()),
        }

    def _competence(self, batch: Batch) -> float:
        """What the policy can do, in [0, 1]; 1 in a world that has no goal."""
        if batch.life_goal is None:
            return 1.0
        return COMPETENCE_DECAY * self.competence + (1.0 - COMPETENCE_DECAY) * float(batch.life_goal.mean())

    def _estimate_constraints(self, batch: Batch, progress: float) -> tuple[Constraints, dict[str, float]]:
        algo = self.algo
        estimate = estimate_costs(batch, algo.constraint_unit)
        chosen = [self.config.constraints[name] for name in self.constraints]
        eta = [algo.penalty.eta if one.eta is None else one.eta for one in chosen]
        eta = [penalty_weight(algo.penalty, most, progress, self.competence) for most in eta]
        # Both terms of L_C in the unit of the limit: a team's cost moves by the sum over its agents.
        horizon = 1.0 / (1.0 - algo.cost_gamma) if algo.cost_gamma < 1.0 else math.inf
        scale = {"one": 1.0, "horizon": horizon, "life": float(batch.life_length.mean())}[algo.cost_scale]
        limit = [one.limit for one in chosen]
        constraints = Constraints(
            names=tuple(self.constraints),
            limit=torch.tensor(limit, dtype=torch.float64),
            cost=torch.as_tensor(estimate[algo.constraint_estimate]),
            alpha=torch.tensor([alpha_of(algo.penalty, one) for one in chosen], dtype=torch.float64),
            eta=torch.tensor(eta, dtype=torch.float64),
            scale=scale * unit_factor(batch, algo.constraint_unit),
            device=self.device,
        )
        metrics: dict[str, float] = {}
        for k, name in enumerate(self.constraints):
            numbers = {**{kind: values[k] for kind, values in estimate.items()}, "limit": limit[k], "eta": eta[k]}
            metrics |= {f"constraint/{name}/{kind}": float(number) for kind, number in numbers.items()}
        return constraints, metrics

    def _policy_data(self, batch: Batch, observation: Tensor, returns: Returns, constraints: Constraints) -> PolicyData:
        algo = self.algo
        return PolicyData(
            observation=observation,
            memory=batch.memory,
            action=batch.action,
            log_prob=batch.log_prob,
            advantage=scale_advantage(self._tensor(returns.advantage), algo.reward_advantage),
            cost_advantage=scale_advantage(self._tensor(returns.cost_advantage), algo.cost_advantage),
            constraints=constraints,
        )

    def _critic_data(self, batch: Batch, observation: Tensor, returns: Returns) -> CriticData:
        order = np.argsort(batch.moment, kind="stable")
        rows = torch.as_tensor(order, device=self.device)
        target = np.concatenate((returns.target[:, None], returns.cost_target), 1)[order]
        starts = np.append(0, np.cumsum(np.bincount(batch.moment)))
        team_target = self._tensor(returns.team_target)
        inputs = critic_inputs(observation, batch.memory).index_select(0, rows)
        return CriticData(inputs, self._tensor(target), team_target, starts)

    @torch.no_grad()
    def _values(self, observation: Tensor, batch: Batch) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """[S, 1 + K] and [F, 1 + K], in units of the returns."""
        final = self.normaliser(batch.final_observation)
        pairs = ((observation, batch.memory), (final, batch.final_memory))
        values = []
        for pair in pairs:
            parts = critic_inputs(*pair).split(BLOCK_ROWS)  # they stay in a core's cache
            columns = [torch.cat([critic(part) for part in parts]) for critic in self.critics.values()]
            values.append(torch.stack(columns, -1).double().cpu().numpy())
        return values[0], values[1]

    def _critic_metrics(self, value: NDArray[np.float64], returns: Returns) -> dict[str, float]:
        pairs = {"critic/explained_variance": (returns.team_value, returns.team_target)}
        for k, name in enumerate(self.constraints):
            pairs[f"critic/{name}/explained_variance"] = (value[:, 1 + k], returns.cost_target[:, k])
        return {name: explained_variance(torch.as_tensor(v), torch.as_tensor(t)) for name, (v, t) in pairs.items()}

    def actor_weights(self) -> dict[str, NDArray[np.float32]]:
        """All that NumpyActor needs, the observation normaliser included."""
        shift, scale = self.normaliser.shift_and_scale()
        tensors = {**self.actor.state_dict(), "shift": shift, "scale": scale}
        return {name: tensor.detach().cpu().numpy().astype(np.float32, copy=True) for name, tensor in tensors.items()}

    def predict_value(self, observation: NDArray, memory: NDArray) -> NDArray[np.float32]:
        """v_i of raw observations [..., O] and memories [..., H] -> [...]"""
        return self._predict(self.critics["value"], observation, memory)

    def predict_costs(self, observation: NDArray, memory: NDArray) -> dict[str, NDArray[np.float32]]:
        """Expected discounted cost to go per constraint, of [..., O] and [..., H] -> {name: [...]}"""
        return {name: self._predict(self.critics[name], observation, memory) for name in self.constraints}

    @torch.no_grad()
    def _predict(self, critic: Critic, observation: NDArray, memory: NDArray) -> NDArray[np.float32]:
        inputs = critic_inputs(self.normaliser(self._tensor(observation)), self._tensor(memory))
        return critic(inputs).cpu().numpy()

    def state_dict(self) -> dict[str, Any]:
        """Tensors and plain containers only. The shuffling RNG is a function of (seed, iteration): nothing to store."""
        return {
            "sizes": self.sizes,
            "actor": self.actor.state_dict(),
            "critics": {name: critic.state_dict() for name, critic in self.critics.items()},
            "normaliser": self.normaliser.state_dict(),
            "actor_optimiser": self.actor_optimiser.state_dict(),
            "critic_optimiser": self.critic_optimiser.state_dict(),
            "algorithm": self.algorithm.state_dict(),
            "competence": self.competence,
            "iteration": self.iteration,
        }

    def load_networks(self, state: dict[str, Any]) -> None:
        """Actor, critics and normalisers of another learner's state; optimisers and counters stay as they are."""
        self.actor.load_state_dict(state["actor"])
        for name, critic in self.critics.items():
            critic.load_state_dict(state["critics"][name])
        self.normaliser.load_state_dict(state["normaliser"])

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.load_networks(state)
        # Copies: an optimiser keeps the tensors that it is given, and changes them.
        self.actor_optimiser.load_state_dict(_copy(state["actor_optimiser"]))
        self.critic_optimiser.load_state_dict(_copy(state["critic_optimiser"]))
        self.algorithm.load_state_dict(_copy(state.get("algorithm", {})))  # older checkpoints have neither
        self.competence = float(state.get("competence", 0.0))
        self.iteration = int(state["iteration"])

    def _require_finite_batch(self, batch: Batch) -> None:
        names = ("observation", "memory", "action", "log_prob", "final_observation", "final_memory", "reward", "cost")
        require_finite((f"batch.{name}", torch.as_tensor(getattr(batch, name))) for name in names)

    def _named_tensors(self) -> list[tuple[str, Tensor]]:
        modules: dict[str, nn.Module] = {"actor": self.actor, "normaliser": self.normaliser}
        modules |= {f"critic {name}": critic for name, critic in self.critics.items()}
        return [(f"{m}.{n}", tensor) for m, module in modules.items() for n, tensor in module.state_dict().items()]

    def _tensor(self, array: NDArray) -> Tensor:
        return torch.as_tensor(np.asarray(array, np.float32), device=self.device)

    @staticmethod
    def _set_lr(optimiser: torch.optim.Optimizer, lr: float) -> None:
        for group in optimiser.param_groups:
            group["lr"] = lr


def _copy(state: Any) -> Any:
    """A state dict with tensors of its own: copy.deepcopy without what makes it slow for tensors."""
    if isinstance(state, Tensor):
        return state.detach().clone()
    if isinstance(state, dict):
        return {key: _copy(value) for key, value in state.items()}
    return [_copy(value) for value in state] if isinstance(state, list) else state
