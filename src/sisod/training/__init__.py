"""Training networks with size-invariant losses, and scoring inside the loop (extra `torch`)."""

from sisod.common.errors import TRAINING, require

require("sisod.training", *TRAINING)
