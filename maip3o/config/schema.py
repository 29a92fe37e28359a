"""The schema of a run: what may be configured, with types. Values and their meaning live in conf/*.yaml."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field, fields
from typing import Any, cast

from omegaconf import MISSING, DictConfig, OmegaConf


@dataclass
class ScenarioConfig:
    """Which world, who drives in it, and when an episode ends."""

    name: str = MISSING
    world: str = "driving"  # a kind of world in maip3o/envs/registry.py, or package.module:NAME
    map: str = ""  # driving only: intersection | parking_lot | roundabout | bottleneck | tollgate | pg
    num_agents: int = 10
    horizon: int = 500
    respawn: bool = False
    end_rule: str = "half"  # half | first | all
    backend: str = "fast"  # fast | stock
    lidar: str = "exact"  # exact | analytic (fast backend only)
    observation: str = "linear"  # linear | near: distances as they are, or their logarithm
    metadrive: dict[str, Any] = field(default_factory=dict)  # passed on to MetaDrive's own config
    settings: dict[str, Any] = field(default_factory=dict)  # what other worlds know besides
    id: str = ""  # the task, in worlds that have several
    cost: str = ""  # where a foreign world's cost comes from: a key of its info, or package.module:function
    costs: dict[str, dict[str, Any]] = field(default_factory=dict)  # of constraints: another function, its parameters
    steps: int | None = None  # usual budget of a run in steps; null: it is counted in episodes
    paper_alpha: float = 0.5  # alpha of algo=ip3o_paper: the paper has one for each suite
    initial_mean: list[float] | None = None  # of the actions before any learning; null: the world's own
    initial_std: list[float] | None = None


@dataclass
class ConstraintConfig:
    """One constraint: the cost of this name that the scenario's world knows."""

    limit: float = MISSING  # d_k
    alpha: float | None = None  # null: algo.penalty.alpha
    eta: float | None = None  # null: algo.penalty.eta


@dataclass
class PenaltyConfig:
    """g(L_C) of the penalty algorithms: how a constraint enters the policy's loss."""

    eta: float = 1.0
    eta_start: float | None = None  # the weight grows from it to eta
    growth: str = "fixed"  # fixed | odds: eta itself, or the odds of reaching the goal, at most eta
    alpha: float | None = None
    floor_h: float | None = None


@dataclass
class AlgoConfig:
    name: str = MISSING
    method: str = "ip3o"  # of config/algorithms.py, or package.module:Class
    settings: dict[str, Any] = field(default_factory=dict)  # of the method alone
    penalty: PenaltyConfig = field(default_factory=PenaltyConfig)
    gamma: float = 0.99
    gae_lambda: float = 0.95
    cost_gamma: float = 0.99
    cost_gae_lambda: float = 0.95
    clip: float = 0.2
    clip_cost: bool = True
    cost_scale: str = "one"  # one | horizon | life: 1, 1 / (1 - gamma), mean steps of a life
    reward_advantage: str = "standardised"  # standardised | centred | raw
    cost_advantage: str = "standardised"  # likewise
    constraint_estimate: str = "uncensored"  # mean | uncensored
    constraint_unit: str = "per_agent"  # per_agent | per_team
    credit: str = "decomposed"  # team | decomposed
    value_target: str = "team"  # team | agent: the return that the reward critic fits
    huber_delta: float = 10.0
    epochs: int = 4
    minibatches: int = 4
    minibatch_steps: int | None = None  # agent-steps of a minibatch, instead of a number of minibatches
    chunk_length: int = 16
    lr: float = 3e-4
    critic_lr: float = 5e-4
    lr_schedule: str = "linear"  # constant | linear
    entropy_bonus: float = 0.0
    max_grad_norm: float = 0.5
    kl_min: float = 0.0  # delta-
    kl_max: float = 0.02  # delta+
    kl_test: str = "minibatch"  # minibatch | epoch


def alpha_of(penalty: PenaltyConfig, constraint: ConstraintConfig) -> float:
    """Where neither has one: the limit itself, so that the incentive reaches from the limit to no cost at all."""
    alpha = penalty.alpha if constraint.alpha is None else constraint.alpha
    return constraint.limit if alpha is None else alpha


@dataclass
class ModelConfig:
    hidden_sizes: list[int] = field(default_factory=lambda: [64, 64])
    activation: str = "tanh"  # tanh | relu
    recurrent: bool = True
    memory_size: int = 64
    normalise_observation: bool = True
    normalise_value: bool = True
    compiled: str = "auto"  # auto | off: torch alone


@dataclass
class RunnerConfig:
    name: str = "local"  # local | ray
    episode_timeout: float = 300.0  # seconds before a silent worker is killed
    max_attempts: int = 3  # of one episode
    address: str | None = None  # ray only: cluster to join; null starts a local Ray


@dataclass
class EvaluationConfig:
    """Evaluation during training."""

    every_episodes: int = 100
    episodes: int = 10
    deterministic: bool = False


@dataclass
class LoggerConfig:
    quiet: bool = False
    tensorboard: bool = True
    wandb_project: str | None = None


@dataclass
class Config:
    scenario: ScenarioConfig = field(default_factory=ScenarioConfig)
    constraints: dict[str, ConstraintConfig] = field(default_factory=dict)
    algo: AlgoConfig = field(default_factory=AlgoConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    runner: RunnerConfig = field(default_factory=RunnerConfig)
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)
    logger: LoggerConfig = field(default_factory=LoggerConfig)
    seed: int = 0
    total_episodes: int = 2000
    episodes_per_iteration: int = 2
    total_steps: int | None = None  # of the world, instead of total_episodes
    steps_per_iteration: int | None = None  # with total_steps: whole episodes until so many are reached
    start_spread: int | None = None  # steps
    num_workers: int | str = "auto"
    torch_threads: int | str = "auto"
    device: str = "auto"
    checkpoint_every_episodes: int = 100
    resume: str | None = None
    init: str | None = None


def from_dict(content: Any) -> Config:
    """A Config from plain containers or a DictConfig; omegaconf's errors pass through."""
    tree: Any = OmegaConf.to_container(content) if isinstance(content, DictConfig) else content
    return cast(Config, OmegaConf.to_object(OmegaConf.merge(OmegaConf.structured(Config), _converted(tree))))


def _converted(content: dict[str, Any]) -> dict[str, Any]:
    """Configs as people write them, and those of older checkpoints and records."""
    content = _with_costs(content)
    if "model" not in content:
        return content
    model, scenario = dict(content["model"]), content.get("scenario", {})
    usual = {"throttle_bias": 0.5, "steering_std": 0.6, "initial_std": 0.3}
    old = [model.pop(key, value) for key, value in usual.items()]
    if old != list(usual.values()):
        scenario = {**scenario, "initial_mean": [0.0, old[0]], "initial_std": old[1:]}
    return {**content, "model": model, "scenario": scenario, "algo": _converted_algo(content.get("algo", {}))}


def _with_costs(content: dict[str, Any]) -> dict[str, Any]:
    """What stands beside a constraint's limit and says what it costs belongs to the scenario's world."""
    own = [item.name for item in fields(ConstraintConfig)]
    costs: dict[str, Any] = {}
    limits = dict(content.get("constraints", {}))
    for name, constraint in limits.items():
        if isinstance(constraint, dict):
            # `limits` is a slip of the pen, for omegaconf to refuse.
            others = {k: v for k, v in constraint.items() if not difflib.get_close_matches(k, own, cutoff=0.8)}
            limits[name] = {key: value for key, value in constraint.items() if key not in others}
            costs |= {name: others} if others else {}
    if not costs:
        return content
    scenario = content.get("scenario", {})
    return {**content, "constraints": limits, "scenario": {**scenario, "costs": {**scenario.get("costs", {}), **costs}}}


def _converted_algo(algo: dict[str, Any]) -> dict[str, Any]:
    methods = {"celu": "ip3o", "relu": "p3o", "none": "ppo", "log_barrier": "ipo", "lagrangian": "ppo_lagrangian"}
    penalty = dict(algo.get("penalty", {}))
    if "name" not in penalty:
        return algo
    penalty.pop("multiplier_lr", None)
    return {**algo, "method": methods[penalty.pop("name")], "penalty": penalty}
