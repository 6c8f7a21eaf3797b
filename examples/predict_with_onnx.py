"""Predicts with an ONNX file of a product, without PyTorch, and scores the maps.

    python examples/predict_with_onnx.py --model FILE --images IMAGES --masks MASKS --out OUT

Without `--model` a tiny graph and synthetic scenes are made, so that the example runs anywhere. The same
from the command line, for a file like U2-Net's:

    sisod predict onnx:FILE IMAGES MAPS --activation none --normalize minmax
    sisod evaluate MAPS MASKS
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np

import sisod
from sisod.data.scenes import make_scenes
from sisod.networks.onnx_model import OnnxModel, predict_onnx


def write_tiny_model(path: Path) -> None:
    """Write a graph whose map is the sigmoid of a weighted sum of the colours."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    weights = np.array([4.0, -8.0, 4.0], np.float32).reshape(1, 3, 1, 1)
    graph = helper.make_graph(
        [
            helper.make_node("Conv", ["image", "weights"], ["sum"]),
            helper.make_node("Sigmoid", ["sum"], ["map"]),
        ],
        "tiny",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 3, 64, 64])],
        [helper.make_tensor_value_info("map", TensorProto.FLOAT, ["batch", 1, 64, 64])],
        [numpy_helper.from_array(weights, "weights")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, path)


def main(arguments: Sequence[str] | None = None) -> None:
    """Predict and score."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--images", type=Path)
    parser.add_argument("--masks", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    chosen = parser.parse_args(arguments)
    model, images, masks = chosen.model, chosen.images, chosen.masks
    if model is None:
        chosen.out.mkdir(parents=True, exist_ok=True)
        model = chosen.out / "tiny.onnx"
        write_tiny_model(model)
    if images is None:
        images, masks = chosen.out / "image", chosen.out / "mask"
        for scene in make_scenes(8, shape=(64, 96)):
            for folder, picture in ((images, scene.image), (masks, scene.mask)):
                folder.mkdir(exist_ok=True)
                cv2.imwrite(str(folder / f"{scene.name}.png"), picture)
    # the graph ends with a sigmoid, so its values are probabilities
    done = predict_onnx(OnnxModel(model, activation="none"), images, chosen.out / "maps")
    result = sisod.evaluate(chosen.out / "maps", masks)
    print(f"{done.n_new} maps; MAE {result.summary['mae']:.3f}, SI-MAE {result.summary['si_mae']:.3f}")


if __name__ == "__main__":
    main()
