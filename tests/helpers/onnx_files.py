"""Small ONNX files, built on the spot: graphs of one node for each output."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

Shape = Sequence[int | str | None]
ANY: Shape = ("batch", 3, "height", "width")


def write_onnx(
    path: Path,
    channels: Mapping[str, Sequence[int]],
    *,
    shape: Shape = ANY,
    gain: float = 1.0,
    activation: str = "Identity",
    inputs: Sequence[str] = ("image",),
    metadata: Mapping[str, str] | None = None,
) -> Path:
    """Write a file whose outputs are channels of the first input, times a gain, activated."""
    from onnx import TensorProto, helper, numpy_helper

    kind = TensorProto.FLOAT
    nodes: list[Any] = []
    constants = [numpy_helper.from_array(np.asarray(gain, np.float32), "gain")]
    nodes.append(helper.make_node("Mul", [inputs[0], "gain"], ["scaled"]))
    for name, numbers in channels.items():
        constants.append(numpy_helper.from_array(np.asarray(numbers, np.int64), f"{name}_channels"))
        nodes.append(helper.make_node("Gather", ["scaled", f"{name}_channels"], [f"{name}_raw"], axis=1))
        nodes.append(helper.make_node(activation, [f"{name}_raw"], [name]))
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info(name, kind, list(shape)) for name in inputs],
        [helper.make_tensor_value_info(name, kind, None) for name in channels],
        constants,
    )
    return save(path, graph, metadata or {})


def write_node(path: Path, operator: str, *, shape: Shape = ANY, **attributes: Any) -> Path:
    """Write a file of one node: image -> map."""
    from onnx import TensorProto, helper

    graph = helper.make_graph(
        [helper.make_node(operator, ["image"], ["map"], **attributes)],
        "one node",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, list(shape))],
        [helper.make_tensor_value_info("map", attributes.get("to", TensorProto.FLOAT), None)],
    )
    return save(path, graph, {})


def save(path: Path, graph: Any, metadata: Mapping[str, str]) -> Path:
    """Write a graph as a file of an opset that every supported onnxruntime reads."""
    import onnx
    from onnx import helper

    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    helper.set_model_props(model, dict(metadata))
    onnx.save(model, str(path))
    return path
