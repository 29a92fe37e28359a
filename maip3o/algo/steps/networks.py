"""What a minibatch does with the actor's network: evaluate it, and take Adam's step from the gradient of a loss."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor, nn

from maip3o.algo.finite import NonFiniteError, clip_gradients
from maip3o.algo.steps.adam import adam_state
from maip3o.algo.view import PolicyView, Sample
from maip3o.data.chunks import Packed
from maip3o.models.compiled.policy import actor_step
from maip3o.models.compiled.training import forward
from maip3o.models.mlp import array, arrays, compiled_for


class TorchNetwork:
    """Any actor, by autograd."""

    def __init__(self, view: PolicyView) -> None:
        self.view = view
        self._named = list(view.actor.named_parameters())

    def evaluate(self, packed: Packed) -> Sample:
        return self.view.evaluate(packed)

    def step(self, loss: Tensor) -> float:
        """The gradient's norm before clipping."""
        self.view.optimiser.zero_grad()
        loss.backward()
        norm = clip_gradients("actor", self._named, self.view.algo.max_grad_norm)
        self.view.optimiser.step()
        return norm


class CompiledNetwork:
    """A feed-forward actor on a CPU: autograd ends at the mean actions, the layers and Adam are two compiled calls."""

    @staticmethod
    def fits(view: PolicyView) -> bool:
        return view.actor.gru is None and compiled_for(view.data.observation, view.actor.compiled)

    def __init__(self, view: PolicyView) -> None:
        self.view, actor = view, view.actor
        layers = [layer for layer in actor.encoder if isinstance(layer, nn.Linear)] + [actor.head]
        weights, biases = [layer.weight for layer in layers], [layer.bias for layer in layers]
        self._parameters = arrays(weights), arrays(biases), array(actor.log_std)
        self._relu = actor.encoder.activation == "relu"
        self._states = [adam_state(view.optimiser, p) for p in (*weights, *biases, actor.log_std)]
        first, second = (arrays([s[key] for s in self._states]) for key in ("exp_avg", "exp_avg_sq"))
        count = len(layers)
        parts = (slice(count), slice(count, -1), -1)
        self._averages = [average[part] for part in parts for average in (first, second)]
        self._d_parameters = [tuple(np.empty_like(one) for one in group) for group in self._parameters[:2]]
        self._sizes = [weights[0].shape[1], *map(len, biases)]
        self._observation = array(view.data.observation)
        self._make_room(0)

    def _make_room(self, rows: int) -> None:
        self._outputs, self._d_outputs = (
            tuple(np.empty((rows, size), np.float32) for size in self._sizes) for _ in ("outputs", "gradients")
        )

    def evaluate(self, packed: Packed) -> Sample:
        count = len(packed.rows)
        if count > len(self._outputs[0]):
            self._make_room(count)
        weights, biases, _ = self._parameters
        forward(self._observation, packed.rows, weights, biases, self._outputs, self._relu)
        self._mean = torch.from_numpy(self._outputs[-1][:count]).requires_grad_()
        return self.view.sample(packed, self._mean)

    def step(self, loss: Tensor) -> float:
        d_mean, d_log_std = torch.autograd.grad(loss, (self._mean, self.view.actor.log_std))
        self._d_outputs[-1][: len(d_mean)] = d_mean.numpy()
        group = self.view.optimiser.param_groups[0]
        norm = actor_step(
            len(d_mean), self._outputs, self._d_outputs, *self._parameters, *self._d_parameters, d_log_std.numpy(),
            self._relu, *self._averages, int(self._states[0]["step"]) + 1, group["lr"], *group["betas"], group["eps"],
            self.view.algo.max_grad_norm,
        )  # fmt: skip
        if not math.isfinite(norm):
            raise NonFiniteError("gradient norm of actor")
        for state in self._states:
            state["step"] += 1
        return float(norm)
