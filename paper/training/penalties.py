"""Penalties on the features of a batch that pull domains together: CFD, and what others have proposed.

Each is a function of features, domains and labels. Those that compare two clouds are averaged over the pairs of domains
where there are more. Rows without a label have a negative one.
"""

from collections.abc import Callable
from itertools import combinations
from typing import Any

import torch
from torch import Tensor, nn

from crossfusion.torch import CrossFusionLoss

Penalty = Callable[[Tensor, Tensor, Tensor], Tensor]
Pair = Callable[[Tensor, Tensor], Tensor]


def coral(a: Tensor, b: Tensor) -> Tensor:
    r"""Difference of covariances, with n - 1: :math:`\lVert C_A - C_B\rVert_F^2 / 4d^2`.

    Parameters
    ----------
    a, b : tensor of shape (rows, dim)
        The two clouds.

    Returns
    -------
    tensor
        One number.

    References
    ----------
    Sun and Saenko, *Deep CORAL: correlation alignment for deep domain adaptation* (2016).
    """
    return (_covariance(a) - _covariance(b)).square().sum() / (4 * a.shape[1] ** 2)


def _covariance(x: Tensor) -> Tensor:
    centred = x - x.mean(dim=0)
    return centred.T @ centred / max(len(x) - 1, 1)


def linear_mmd(a: Tensor, b: Tensor) -> Tensor:
    r"""Squared distance of the means, the MMD² of a linear kernel; CFD's :math:`B = w_A w_B` times this.

    Parameters
    ----------
    a, b : tensor of shape (rows, dim)
        The two clouds.

    Returns
    -------
    tensor
        One number.

    References
    ----------
    Tzeng, Hoffman, Zhang, Saenko and Darrell, *Deep domain confusion* (2014).
    """
    return (a.mean(dim=0) - b.mean(dim=0)).square().sum()


def rbf_mmd(a: Tensor, b: Tensor) -> Tensor:
    """Biased MMD² of a Gaussian kernel whose width is the median distance of the batch, without a gradient.

    Parameters
    ----------
    a, b : tensor of shape (rows, dim)
        The two clouds.

    Returns
    -------
    tensor
        One number, the square of ``crossfusion.distances["mmd"]``.

    References
    ----------
    Long, Cao, Wang and Jordan, *Learning transferable features with deep adaptation networks* (2015).
    """
    squares = _squares(torch.cat([a, b]))
    kernel = torch.exp(-squares / (2 * _median_square(squares.detach()).clamp(min=torch.finfo(a.dtype).tiny)))
    n = len(a)
    return kernel[:n, :n].mean() + kernel[n:, n:].mean() - 2 * kernel[:n, n:].mean()


def _squares(x: Tensor) -> Tensor:
    """Squared distances of all pairs of rows: one product, around the mean, where rounding is least."""
    centred = x - x.mean(dim=0).detach()
    norms = centred.square().sum(dim=1)
    return (norms[:, None] + norms[None, :] - 2 * centred @ centred.T).clamp(min=0)


def _median_square(squares: Tensor) -> Tensor:
    """Square of the median distance of the pairs i < j: the mean of both middle ones where their number is even."""
    rows, columns = torch.triu_indices(len(squares), len(squares), offset=1)
    gaps = squares[rows, columns].sqrt()
    return ((gaps.median() - (-gaps).median()) / 2).square()


class Reversal(torch.autograd.Function):
    """The same values; the gradient turned round, at a strength."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, strength: float) -> Tensor:
        """The values."""
        ctx.strength = strength
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        """Minus the gradient."""
        return -ctx.strength * gradients[0], None


class Adversary(nn.Module):
    """DANN: a network that tells domains apart by the features, which are trained to prevent it.

    Parameters
    ----------
    width : int
        Number of features.
    domains : int
        Number of domains.

    References
    ----------
    Ganin, Ustinova, Ajakan, Germain, Larochelle, Laviolette, Marchand and Lempitsky, *Domain-adversarial training of
    neural networks* (2016).
    """

    def __init__(self, width: int, domains: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, domains))

    def forward(self, features: Tensor, domain: Tensor, strength: float) -> Tensor:
        """Cross-entropy of the domains; its gradient reaches the features reversed, and times `strength`."""
        turned = Reversal.apply(features, strength)  # type: ignore[no-untyped-call]
        return nn.functional.cross_entropy(self.layers(turned), domain)


def over_pairs(pair: Pair, domains: int) -> Penalty:
    """A penalty on two clouds as one on domains: the average over their pairs."""

    def penalty(features: Tensor, domain: Tensor, _label: Tensor) -> Tensor:
        parts = [features[domain == k] for k in range(domains)]
        return torch.stack([pair(a, b) for a, b in combinations(parts, 2)]).mean()

    return penalty


def penalty_of(method: str, domains: int, classes: int, *, unbiased: bool = True) -> Penalty:
    """The penalty of a method, other than DANN's; CFD unbiased, as batches are small, unless its size is wanted."""
    pairs = {"coral": coral, "mmd_linear": linear_mmd, "mmd_rbf": rbf_mmd}
    if method in pairs:
        return over_pairs(pairs[method], domains)
    if method == "cfd":
        fusing = CrossFusionLoss("domain", num_groups=domains, unbiased=unbiased)
        return lambda features, domain, _label: fusing(features, domain=domain)
    within = CrossFusionLoss("domain", given="label", num_groups=domains, num_given=classes, unbiased=unbiased)
    return lambda features, domain, label: within(features, domain=domain, label=label)
