"""Training networks with size-invariant losses, and scoring inside the loop (extra `torch`)."""

try:
    import torch as _torch  # noqa: F401
except ImportError:
    raise ImportError(
        "sisod.training needs PyTorch; install it with: pip install 'sisod[torch]'"
    ) from None
