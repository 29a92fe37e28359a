"""The actor as an ONNX graph, written node by node from its weights: one step, memory in and out.

torch's exporter would need a package more and traces the training-time packing; the graph is twenty nodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maip3o.config.schema import ModelConfig
from maip3o.models.normaliser import OBSERVATION_CLIP

OPSET, IR_VERSION = 17, 8  # old enough for every onnxruntime since 2022


class _Graph:
    """Nodes and constants as they are added."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, name: str, values: NDArray[Any]) -> str:
        from onnx import numpy_helper

        self.constants.append(numpy_helper.from_array(np.asarray(values, order="C"), name))
        return name

    def add(self, kind: str, inputs: list[str], outputs: str | list[str], **attributes: Any) -> str:
        from onnx import helper

        names = [outputs] if isinstance(outputs, str) else outputs
        self.nodes.append(helper.make_node(kind, inputs, names, name=f"{kind}_{names[0]}", **attributes))
        return names[0]

    def linear(self, x: str, weights: Mapping[str, NDArray[np.float32]], weight: str, bias: str, output: str) -> str:
        inputs = [x, self.constant(weight, weights[weight]), self.constant(bias, weights[bias])]
        return self.add("Gemm", inputs, output, transB=1)


def build_actor(weights: Mapping[str, NDArray[np.float32]], model: ModelConfig, metadata: Mapping[str, str]) -> Any:
    """ModelProto: observation [N, O] (raw) and memory [N, H] to action [N, U] (the mean) and next_memory [N, H].

    A policy without memory has neither memory input nor output. N is the number of agents, any.
    """
    from onnx import TensorProto, checker, helper

    graph = _Graph()
    shift = graph.constant("shift", weights["shift"])
    scale = graph.constant("scale", weights["scale"])
    low = graph.constant("clip_low", np.array(-OBSERVATION_CLIP, np.float32))
    high = graph.constant("clip_high", np.array(OBSERVATION_CLIP, np.float32))
    x = graph.add("Sub", ["observation", shift], "shifted")
    x = graph.add("Mul", [x, scale], "scaled")
    x = graph.add("Clip", [x, low, high], "normalised")
    activation = "Relu" if model.activation == "relu" else "Tanh"
    for layer in range(len(model.hidden_sizes)):
        name = f"encoder.{2 * layer}"
        x = graph.linear(x, weights, f"{name}.weight", f"{name}.bias", f"linear_{layer}")
        x = graph.add(activation, [x], f"features_{layer}")
    if model.recurrent:
        x = _gru(graph, x, weights, model.memory_size)
    graph.linear(x, weights, "head.weight", "head.bias", "action")

    def tensor(name: str, size: int) -> Any:
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, ["agents", size])

    inputs, outputs = [tensor("observation", len(weights["shift"]))], [tensor("action", len(weights["log_std"]))]
    if model.recurrent:
        inputs.append(tensor("memory", model.memory_size))
        outputs.append(tensor("next_memory", model.memory_size))
    proto = helper.make_model(
        helper.make_graph(graph.nodes, "maip3o_actor", inputs, outputs, graph.constants),
        producer_name="maip3o",
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
    )
    helper.set_model_props(proto, dict(metadata))
    checker.check_model(proto, full_check=True)
    return proto


def _gru(graph: _Graph, x: str, weights: Mapping[str, NDArray[np.float32]], size: int) -> str:
    """One step of the GRU, gates in torch's order: reset, update, new."""
    sizes = graph.constant("gate_sizes", np.array([size, size, size], dtype=np.int64))
    given = graph.linear(x, weights, "gru.weight_ih", "gru.bias_ih", "given")
    recalled = graph.linear("memory", weights, "gru.weight_hh", "gru.bias_hh", "recalled")
    graph.add("Split", [given, sizes], ["given_reset", "given_update", "given_new"], axis=1)
    graph.add("Split", [recalled, sizes], ["recalled_reset", "recalled_update", "recalled_new"], axis=1)
    for gate in ("reset", "update"):
        graph.add("Add", [f"given_{gate}", f"recalled_{gate}"], f"sum_{gate}")
        graph.add("Sigmoid", [f"sum_{gate}"], gate)
    graph.add("Mul", ["reset", "recalled_new"], "kept_new")
    graph.add("Add", ["given_new", "kept_new"], "sum_new")
    graph.add("Tanh", ["sum_new"], "new")
    # memory' = new + update * (memory - new)
    graph.add("Sub", ["memory", "new"], "difference")
    graph.add("Mul", ["update", "difference"], "held")
    return graph.add("Add", ["new", "held"], "next_memory")
