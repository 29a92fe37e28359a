"""The learner: networks, optimisers and normalisers, and one update from a list of episodes."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from maip3o.algo.bound import theorem2_bound
from maip3o.algo.constraint import estimate_constraints, unit_factor
from maip3o.algo.critic_update import CriticData, update_critics
from maip3o.algo.finite import NonFiniteError, require_finite
from maip3o.algo.losses import explained_variance, scale_advantage
from maip3o.algo.penalties import at_progress, by_odds, get_penalty
from maip3o.algo.policy_update import (
    PolicyData,
    constraint_diagnostics,
    max_ratio_error,
    mean_kl,
    replay,
    update_policy,
)
from maip3o.algo.returns import Returns, compute_returns
from maip3o.config.schema import AlgoConfig, Config
from maip3o.data.batch import Batch, make_batch
from maip3o.data.chunks import cut_into_chunks, pack
from maip3o.data.episode import Episode
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
        get_penalty(config.algo.penalty.name)  # a wrong name must stop the run before it starts
        self.config, self.algo, self.device = config, config.algo, torch.device(device)
        self.constraints = list(config.constraints)
        limits = [config.constraints[name].limit for name in self.constraints]
        self.limit = torch.tensor(limits, dtype=torch.float64)
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
        self.multiplier = torch.zeros(len(self.constraints), dtype=torch.float64)
        self.competence = 0.0  # moving average of the share of lives that arrive
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
        metrics = self._constraint_metrics(batch)
        data = self._policy_data(batch, observation, returns, metrics)
        arrived = float(batch.life_goal.mean()) if batch.life_goal is not None else 0.0
        self.competence = COMPETENCE_DECAY * self.competence + (1.0 - COMPETENCE_DECAY) * arrived
        penalty = self.algo.penalty
        penalty = by_odds(penalty, self.competence) if penalty.growth == "odds" else at_progress(penalty, progress)
        algo = dataclasses.replace(self.algo, penalty=penalty)
        critic_data = self._critic_data(batch, observation, returns)
        metrics |= self._critic_metrics(value, returns)
        # Neither sees what the other changes, so a second core may as well do the critics.
        with ThreadPoolExecutor(1) as side:
            critics = side.submit(
                update_critics, self.critics, self.critic_optimiser, critic_data, self.algo, rng.spawn(1)[0]
            )
            metrics |= self._train_policy(data, returns, batch, algo, rng)
            metrics |= critics.result()
        self.normaliser.update(batch.observation)
        require_finite(self._named_tensors())
        self.iteration += 1
        schedule = {"lr": self.algo.lr * lr_factor, "eta": penalty.eta, "competence": self.competence}
        return {**metrics, **{f"policy/{name}": value for name, value in schedule.items()}}

    def _train_policy(
        self, data: PolicyData, returns: Returns, batch: Batch, algo: AlgoConfig, rng: np.random.Generator
    ) -> dict[str, float]:
        chunks = cut_into_chunks(batch, algo.chunk_length if self.config.model.recurrent else 1)
        before = replay(self.actor, data, chunks)
        metrics = {"policy/max_ratio_error": max_ratio_error(before, data)}
        sample = pack(chunks, rng.permutation(len(chunks.start))[: max(1, len(chunks.start) // 8)])
        metrics |= constraint_diagnostics(self.actor, data, before, sample, self.constraints, algo)
        metrics |= update_policy(self.actor, self.actor_optimiser, data, before, chunks, self.constraints, algo, rng)
        after = replay(self.actor, data, chunks)
        kl = mean_kl(after, before)
        ratio = torch.exp(after.log_prob - before.log_prob).double().cpu().numpy()
        arguments = [metrics[f"constraint/{name}/penalty_argument"] for name in self.constraints]
        return {
            **metrics,
            "policy/kl": kl,
            "policy/entropy": float(entropy(after.log_std)),
            "policy/std": float(after.log_std.exp().mean()),
            "bound/theorem2": theorem2_bound(kl, ratio, returns, arguments, algo),
        }

    def _constraint_metrics(self, batch: Batch) -> dict[str, float]:
        estimate = estimate_constraints(batch, self.algo.constraint_unit)
        metrics = {}
        for k, name in enumerate(self.constraints):
            metrics[f"constraint/{name}/mean"] = float(estimate.mean[k])
            metrics[f"constraint/{name}/uncensored"] = float(estimate.uncensored[k])
            metrics[f"constraint/{name}/limit"] = float(self.limit[k])
        return metrics

    def _policy_data(
        self, batch: Batch, observation: Tensor, returns: Returns, metrics: dict[str, float]
    ) -> PolicyData:
        algo = self.algo
        j_c = [metrics[f"constraint/{name}/{algo.constraint_estimate}"] for name in self.constraints]
        violation = torch.tensor(j_c, dtype=torch.float64) - self.limit
        if algo.penalty.name == "lagrangian":
            self.multiplier = (self.multiplier + algo.penalty.multiplier_lr * violation).clamp(min=0.0)
        # Both terms of L_C in the unit of the limit: a team's cost moves by the sum over its cars.
        scale = (1.0 if algo.cost_scale == "one" else 1.0 / (1.0 - algo.cost_gamma)) * unit_factor(
            batch, algo.constraint_unit
        )
        return PolicyData(
            observation=observation,
            hidden=batch.hidden,
            action=batch.action,
            log_prob=batch.log_prob,
            advantage=scale_advantage(self._tensor(returns.advantage), algo.reward_advantage),
            cost_advantage=scale_advantage(self._tensor(returns.cost_advantage), algo.cost_advantage),
            violation=violation.float().to(self.device),
            scale=scale,
            multiplier=self.multiplier.float().to(self.device),
        )

    def _critic_data(self, batch: Batch, observation: Tensor, returns: Returns) -> CriticData:
        order = np.argsort(batch.moment, kind="stable")
        rows = torch.as_tensor(order, device=self.device)
        target = np.concatenate((returns.target[:, None], returns.cost_target), 1)[order]
        starts = np.append(0, np.cumsum(np.bincount(batch.moment)))
        team_target = self._tensor(returns.team_target)
        inputs = critic_inputs(observation, batch.hidden).index_select(0, rows)
        return CriticData(inputs, self._tensor(target), team_target, starts)

    @torch.no_grad()
    def _values(self, observation: Tensor, batch: Batch) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """[S, 1 + K] and [F, 1 + K], in units of the returns."""
        final = self.normaliser(batch.final_observation)
        pairs = ((observation, batch.hidden), (final, batch.final_hidden))
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

    def predict_value(self, observation: NDArray, hidden: NDArray) -> NDArray[np.float32]:
        """v_i of raw observations [..., O] and memories [..., H] -> [...]"""
        return self._predict(self.critics["value"], observation, hidden)

    def predict_costs(self, observation: NDArray, hidden: NDArray) -> dict[str, NDArray[np.float32]]:
        """Expected discounted cost to go per constraint, of [..., O] and [..., H] -> {name: [...]}"""
        return {name: self._predict(self.critics[name], observation, hidden) for name in self.constraints}

    @torch.no_grad()
    def _predict(self, critic: Critic, observation: NDArray, hidden: NDArray) -> NDArray[np.float32]:
        inputs = critic_inputs(self.normaliser(self._tensor(observation)), self._tensor(hidden))
        return critic(inputs).cpu().numpy()

    def state_dict(self) -> dict[str, Any]:
        """Tensors and plain containers only. The shuffling RNG is a function of (seed, iteration): nothing to store."""
        return {
            "actor": self.actor.state_dict(),
            "critics": {name: critic.state_dict() for name, critic in self.critics.items()},
            "normaliser": self.normaliser.state_dict(),
            "actor_optimiser": self.actor_optimiser.state_dict(),
            "critic_optimiser": self.critic_optimiser.state_dict(),
            "multiplier": self.multiplier,
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
        self.multiplier = state["multiplier"].clone()
        self.competence = float(state.get("competence", 0.0))  # older checkpoints have none
        self.iteration = int(state["iteration"])

    def _require_finite_batch(self, batch: Batch) -> None:
        names = ("observation", "hidden", "action", "log_prob", "final_observation", "final_hidden", "reward", "cost")
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
