"""Training networks with size-invariant losses, and scoring inside the loop (extra `torch`)."""

from importlib.util import find_spec

if find_spec("torch") is None:
    raise ImportError("sisod.training needs PyTorch; install it with: pip install 'sisod[torch]'")
