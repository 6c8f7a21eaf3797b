"""Recipes -> networks: training with size-invariant losses, and scoring inside the loop (`torch`)."""

from sisod.common.exceptions import TRAINING, require

require("sisod.training", *TRAINING)
