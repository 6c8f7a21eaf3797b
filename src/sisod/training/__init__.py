"""Recipes -> networks: training with size-invariant losses, and scoring inside the loop (`torch`)."""

from sisod.common.errors import TRAINING, require

require("sisod.training", *TRAINING)
