"""Routing of matrix capsules by expectation-maximisation, as ICON's part-whole verification uses it.

Paper: Hinton et al., Matrix Capsules with EM Routing, ICLR 2018; constants as ICON has them.
"""

import torch
import torch.nn.functional as F  # noqa: N812  (the name everybody knows it by)
from torch import Tensor, nn

N_CAPSULES = 8  # in and out
POSE = 4  # a pose is a 4 x 4 matrix
_KERNEL = 3
_STRIDE = 2
_ITERATIONS = 3
_EPS = 1e-12


class EMRouting(nn.Module):
    """Capsules of 3 x 3 neighbours vote for the poses of the capsules at every second position."""

    def __init__(self) -> None:
        super().__init__()
        n_votes = _KERNEL * _KERNEL * N_CAPSULES
        self.weight = nn.Parameter(torch.empty(n_votes, N_CAPSULES, POSE, POSE))
        self.beta_u = nn.Parameter(torch.zeros(1, 1, N_CAPSULES, 1))
        self.beta_a = nn.Parameter(torch.zeros(1, 1, N_CAPSULES))
        nn.init.kaiming_uniform_(self.weight)

    def forward(self, pose: Tensor, activation: Tensor) -> Tensor:
        """Return the poses that the votes agree on.

        Args:
            pose: (B, 128, H, W), channel = capsule * 16 + element.
            activation: (B, 8, H, W) in [0, 1].
        """
        votes = at_least_single(self._votes(pose))
        routed = self._route(votes, _neighbours(at_least_single(activation), 1).squeeze(-1))
        height, width = (-(-side // _STRIDE) for side in pose.shape[-2:])
        return routed.view(pose.shape[0], height, width, pose.shape[1]).permute(0, 3, 1, 2)

    def _votes(self, pose: Tensor) -> Tensor:
        """Return (positions, 72, 8, 16): each neighbour's pose times its matrix for each capsule."""
        poses = _neighbours(pose, POSE * POSE)
        matrices = poses.reshape(*poses.shape[:2], POSE, POSE)
        return torch.einsum("nixk,ijky->nijxy", matrices, self.weight).flatten(-2)

    def _route(self, votes: Tensor, activation: Tensor) -> Tensor:
        """Return the mean pose of each capsule, (positions, 1, 8, 16), after three rounds."""
        share = torch.ones_like(votes[..., 0])  # r_ij
        for iteration in range(_ITERATIONS):
            # M: mean and variance of the votes of each capsule
            weight = share * activation[..., None]
            mass = weight.sum(dim=1, keepdim=True)
            part = (weight / (mass + _EPS))[..., None]
            mean = (part * votes).sum(dim=1, keepdim=True)
            distance = (votes - mean).square()
            variance = (part * distance).sum(dim=1, keepdim=True) + _EPS
            if iteration == _ITERATIONS - 1:
                break
            # E: votes are reassigned to the capsules that explain them; common factors cancel
            inverse_temperature = 0.01 * (1 - 0.95 ** (iteration + 1))
            log_variance = variance.log()
            cost = (self.beta_u + 0.5 * log_variance).sum(dim=-1) * mass
            log_active = F.logsigmoid(inverse_temperature * (self.beta_a - cost))
            log_likelihood = -(0.5 * log_variance + distance / (2 * variance)).sum(dim=-1)
            share = (log_likelihood + log_active).softmax(dim=-1)
        return mean


def at_least_single(x: Tensor) -> Tensor:
    """Return the tensor in float32 or better: float16 is too coarse for sums of many squares."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def _neighbours(x: Tensor, elements: int) -> Tensor:
    """Return (B * positions, 72, elements): of each position 9 neighbours with 8 capsules each."""
    columns = F.unfold(x, _KERNEL, padding=1, stride=_STRIDE)
    split = columns.reshape(x.shape[0], N_CAPSULES, elements, _KERNEL * _KERNEL, columns.shape[-1])
    return split.permute(0, 4, 3, 1, 2).flatten(2, 3).flatten(0, 1)
