"""Fine-tunes a SegFormer of Hugging Face with the size-invariant loss.

    python examples/finetune_segformer.py --model FOLDER_OR_REPOSITORY --data ROOT --out RUN

Without `--model` and `--data` a tiny SegFormer with random weights and synthetic scenes are made, so
that the example runs anywhere. The same from the command line:

    sisod train fpn-lite --set network.name=hf:FOLDER --data ROOT --out RUN
    sisod predict RUN IMAGES MAPS
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cv2

from sisod.data.scenes import make_scenes
from sisod.networks.predict import predict_folder
from sisod.networks.saved import load_network
from sisod.training.recipe import find_recipe
from sisod.training.train import Machine, TrainingRequest, train


def write_tiny_segformer(folder: Path) -> None:
    """Write a SegFormer of two classes as `save_pretrained` does: config.json and safetensors."""
    import transformers

    sizes: dict[str, Any] = {
        "num_labels": 2,
        "depths": [1, 1, 1, 1],
        "hidden_sizes": [8, 16, 24, 32],
        "num_attention_heads": [1, 1, 2, 4],
        "decoder_hidden_size": 16,
    }
    model_class: Any = transformers.SegformerForSemanticSegmentation
    model_class(transformers.SegformerConfig(**sizes)).save_pretrained(folder)
    # how its images are prepared; a published model has this file
    preprocessing = (
        '{"do_resize": true, "size": {"height": 64, "width": 64},'
        ' "image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]}'
    )
    (folder / "preprocessor_config.json").write_text(preprocessing, encoding="utf-8")


def write_scenes(root: Path) -> None:
    """Write synthetic images and masks."""
    for scene in make_scenes(32, shape=(64, 96)):
        for kind, picture in (("image", scene.image), ("mask", scene.mask)):
            (root / kind).mkdir(parents=True, exist_ok=True)
            cv2.imwrite(str(root / kind / f"{scene.name}.png"), picture)


def main(arguments: Sequence[str] | None = None) -> None:
    """Fine-tune, load the run, which is complete in itself, and predict."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--model", help="a folder or repository of Transformers")
    parser.add_argument("--data", type=Path, help="a data set with folders of images and masks")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    chosen = parser.parse_args(arguments)
    model, data = chosen.model, chosen.data
    settings = list(chosen.set)
    if model is None:
        model = str(chosen.out / "segformer")
        write_tiny_segformer(Path(model))
        settings = ["data.size=64", "train.epochs=3", *settings]
    if data is None:
        data = chosen.out / "data"
        write_scenes(data)
    # one learning rate: no parameter of SegFormer has a name that starts with "encoder."
    settings = [f"network.name=hf:{model}", "schedule.encoder_factor=1", *settings]
    recipe = find_recipe("fpn-lite", settings)
    record = train(recipe, TrainingRequest(data=data, out=chosen.out / "run"), Machine(workers=0))
    size = recipe.data.size
    done = predict_folder(
        load_network(chosen.out / "run"), data / "image", chosen.out / "maps", size=size
    )
    print(f"loss {record['scores']['loss']:.3f} after {record['steps']} steps; {done.n_new} maps")


if __name__ == "__main__":
    main()
