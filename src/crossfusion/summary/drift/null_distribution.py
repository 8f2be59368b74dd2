r"""Distribution of the distance between a period and the reference without drift.

Periods differ even without drift: each has its own effect (staff, reagents, case mix), and effects
of consecutive periods are correlated. So the mean of period t is y_t = μ + a_t + e_t, with a_t a stationary
process of variance τ² and correlation ρ^{|s − t|}, and e_t the error of a mean of independent rows or units, of known
variance v_t. Summed over features, the means of periods have the covariance

.. math:: K = \tau^2 \rho^{|s - t|} + \mathrm{diag}(v)

and the squared distance between a period and the reference is a quadratic form that is spread over κ directions, about
a scaled χ² of κ degrees of freedom.

τ² and ρ are not known, and a few reference periods do not tell them well. So they are not estimated but averaged over:
each pair is as plausible as it makes the scatter of the reference periods around their mean (the restricted likelihood,
to a power of about κ/2). Beforehand the density of τ² is proportional to 1/(τ² + v) and that of ρ, up to 0.95, to
1/√(1 − ρ²), the reference prior of a stationary process (Berger and Yang 1994), under which arcsin ρ is uniform. The
p-value is the chance, averaged like this, that a period without drift lies farther off than the one that is judged.
κ is the squared trace of the covariance of a whitened mean over the trace of its square (Bai and Saranadasa 1996), and
its own uncertainty is averaged over as well. With ρ = 0, equal periods and κ known, all this is the F test of one more
period against the scatter of R, with κ and κ(R − 1)/2 degrees of freedom: half of what they would be if rows varied in
no other directions than periods do.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist

import numpy as np

from crossfusion._base import FloatArray
from crossfusion.fusion import Codes

MAX_CORRELATION = 0.95  # highest ρ: with stronger correlation hardly any shift would raise an alarm
RHO = tuple(math.sin((step + 0.5) / 12 * math.asin(MAX_CORRELATION)) for step in range(12))  # equally plausible
COARSE_STEPS, FINE_STEPS = 80, 64  # values of τ² to find the plausible range, and to average over it
MAX_VARIANCE_RATIO = 1e4  # largest τ² relative to the observed variance
DIRECTION_NODES = 10  # number of values of κ
MIN_EFFECT_SHARE = 0.5  # least share of the variance attributed to period effects
LIKELIHOOD_POWER = (
    0.5  # below 1: rows vary in more directions than periods do, so the likelihood overstates the evidence
)
MIN_LOG_LIKELIHOOD = -20.0  # relative to the maximum; less plausible values are ignored
TAIL_COEFFICIENTS = (
    -1.26551223,
    1.00002368,
    0.37409196,
    0.09678418,
    -0.18628806,
    0.27886807,
    -1.13520398,
    1.48851587,
    -0.82215223,
    0.17087277,
)
MIN_WEIGHT = 1e-7  # values with less weight are ignored


@dataclass(frozen=True)
class History:
    """Periods without drift: places in time, products of their means around a common center, errors of these means."""

    place: Codes
    products: FloatArray
    error: FloatArray
    dim: int


@dataclass(frozen=True)
class Target:
    """Tested periods: their places, weights and error, and the weights of the reference periods in `History`."""

    place: Codes
    weight: FloatArray
    error: float
    reference: FloatArray


@dataclass(frozen=True)
class Fits:
    """For one ρ and each τ²: the inverse of K, its row sums, their sum, and the log likelihood for κ = 1."""

    inverse: FloatArray
    sums: FloatArray
    whole: FloatArray
    likelihood: FloatArray


@dataclass(frozen=True)
class ChiSquareMixture:
    """A mixture of scaled χ² distributions: weights, means, degrees of freedom."""

    weight: FloatArray
    mean: FloatArray
    freedom: FloatArray

    def tail_probability(self, square: float) -> float:
        """Probability of a larger value (Wilson and Hilferty 1931)."""
        spread = 2 / (9 * self.freedom)
        normal = (np.cbrt(square / self.mean) - 1 + spread) / np.sqrt(spread)
        return float(np.sum(self.weight * _compute_normal_tail(normal)))

    def quantile(self, rate: float) -> float:
        """Value that is exceeded with this probability."""
        low, high = math.log(self.mean.min()) - 40, math.log(self.mean.max()) + 40
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (middle, high) if self.tail_probability(math.exp(middle)) > rate else (low, middle)
        return math.exp(high)


@dataclass(frozen=True)
class NullDistribution:
    """Distribution of the distance of a period to the reference without drift, from past periods."""

    history: History

    def predict(self, target: Target) -> ChiSquareMixture:
        """Compute the distribution of the squared distance between the target and the reference without drift."""
        moments = [self._predict(target, rho, fits) for rho, fits in zip(RHO, self._fits, strict=True)]
        mean, spread, share = (np.array(values) for values in zip(*moments, strict=True))
        narrower = np.minimum(self._share / np.maximum(share, 1e-12), 1.0) ** 2
        freedom = np.maximum(self.directions[:, None, None] * narrower, 1.0) * mean**2 / spread
        kept = np.flatnonzero(self.weight.ravel() > MIN_WEIGHT)
        weight = self.weight.ravel()[kept]
        wide = np.broadcast_to(mean, freedom.shape).ravel()[kept]
        return ChiSquareMixture(weight / weight.sum(), wide, freedom.ravel()[kept])

    @cached_property
    def error(self) -> float:
        """Typical error of a mean; tiny if there is none."""
        return float(self.history.error.mean()) or 1e-6 * self._scatter

    @cached_property
    def _scatter(self) -> float:
        """Variance of the periods' means."""
        products = self.history.products
        return float(np.trace(products) - products.mean(axis=0).sum()) / (len(products) - 1)

    @cached_property
    def _coarse(self) -> tuple[FloatArray, FloatArray]:
        """Values of τ² far and wide, and the log likelihood of each ρ and each of them."""
        top = self.error + MAX_VARIANCE_RATIO * max(self._scatter, self.error)
        variance = np.geomspace(self.error, top, COARSE_STEPS) - self.error
        return variance, np.array([self._fit(rho, variance).likelihood for rho in RHO])

    @cached_property
    def directions(self) -> FloatArray:
        """Values of κ, equally plausible."""
        variance, likelihood = self._coarse
        best, where = np.unravel_index(int(likelihood.argmax()), likelihood.shape)
        covariance = self._make_covariance(RHO[int(best)], variance[[int(where)]])[0]
        found, freedom = find_directions(covariance, self.history.products, self.history.dim)
        quantiles = chi_square_quantiles((np.arange(DIRECTION_NODES) + 0.5) / DIRECTION_NODES, freedom)
        return np.clip(found * quantiles / freedom, 1.0, self.history.dim)

    @cached_property
    def variance(self) -> FloatArray:
        """Plausible values of τ²."""
        variance, likelihood = self._coarse
        height = self.directions.min() * (likelihood - likelihood.max())
        near = np.flatnonzero(np.any(height > MIN_LOG_LIKELIHOOD, axis=0))
        low, high = variance[max(near[0] - 1, 0)], variance[min(near[-1] + 1, COARSE_STEPS - 1)]
        return np.geomspace(self.error + low, self.error + high, FINE_STEPS) - self.error

    @cached_property
    def _fits(self) -> list[Fits]:
        return [self._fit(rho, self.variance) for rho in RHO]

    @cached_property
    def _likelihood(self) -> FloatArray:
        return np.array([fits.likelihood for fits in self._fits])

    @cached_property
    def _share(self) -> FloatArray:
        """Share of the periods' own effects in the scatter of the reference, for each ρ and τ²."""
        number = len(self.history.place)
        own = np.array([1 - self._make_correlation(rho, self.history.place).mean() for rho in RHO]) * number
        effects = own[:, None] * self.variance
        return np.asarray(effects / (effects + self._error.sum() * (1 - 1 / number)))

    @cached_property
    def _error(self) -> FloatArray:
        return np.maximum(self.history.error, 1e-9 * self.error)

    @cached_property
    def weight(self) -> FloatArray:
        """Plausibility of each κ, ρ and τ²."""
        share = max(float(self._share.ravel()[self._likelihood.argmax()]), MIN_EFFECT_SHARE)
        power = np.maximum(LIKELIHOOD_POWER * self.directions * share**2, 1.0)[:, None, None]
        likely = np.exp(power * (self._likelihood - self._likelihood.max()))
        return np.asarray(likely / likely.sum(axis=(1, 2), keepdims=True) / DIRECTION_NODES)

    def _make_correlation(self, rho: float, place: Codes, other: Codes | None = None) -> FloatArray:
        lag = np.abs(place[:, None] - (place if other is None else other)[None, :])
        return np.asarray(np.power(rho, lag, dtype=np.float64))

    def _make_covariance(self, rho: float, variance: FloatArray) -> FloatArray:
        effects = variance[:, None, None] * self._make_correlation(rho, self.history.place)
        return np.asarray(effects + np.diag(self._error))

    def _fit(self, rho: float, variance: FloatArray) -> Fits:
        covariance = self._make_covariance(rho, variance)
        inverse = np.asarray(np.linalg.inv(covariance), np.float64)
        sums = inverse.sum(axis=2)
        whole = sums.sum(axis=1)
        products = self.history.products
        squares = np.einsum("gij,ij->g", inverse, products) - np.einsum("gi,ij,gj->g", sums, products, sums) / whole
        size = np.linalg.slogdet(covariance)[1]
        return Fits(inverse, sums, whole, np.asarray(-0.5 * (size + np.log(whole) + squares)))

    def _predict(self, target: Target, rho: float, fits: Fits) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Mean and half the variance, for κ = 1, of the squared distance; and the share of periods' effects in it."""
        near = self.variance[:, None] * (target.weight @ self._make_correlation(rho, target.place, self.history.place))
        own = target.weight @ self._make_correlation(rho, target.place) @ target.weight * self.variance
        pulled = np.einsum("gij,gj->gi", fits.inverse, near)
        rest = 1 - pulled.sum(axis=1)
        error = target.error or 1e-9 * self.error
        spread = own + error - np.einsum("gi,gi->g", near, pulled) + rest**2 / fits.whole
        gap = pulled + fits.sums * (rest / fits.whole)[:, None] - target.reference
        offset = np.einsum("gi,ij,gj->g", gap, self.history.products, gap)
        return spread + offset, spread**2 + 2 * spread * offset, own / (own + error)


def find_directions(covariance: FloatArray, products: FloatArray, dim: int) -> tuple[float, float]:
    """Estimate over how many directions whitened means are spread, and the degrees of freedom of its inverse."""
    number = len(products) - 1
    basis = np.linalg.qr(np.column_stack([np.ones(number + 1), np.eye(number + 1)[:, :number]]))[0][:, 1:]
    whiten = np.linalg.inv(np.linalg.cholesky(basis.T @ covariance @ basis)) @ basis.T
    white = whiten @ products @ whiten.T
    trace, squares = float(np.trace(white)), float(np.sum(white**2))
    square = (squares - trace**2 / number) / ((number - 1) * (number + 2))
    squared_trace = (trace**2 - 2 * number * square) / number**2
    found = squared_trace / square if square * dim > squared_trace else float(dim)
    return float(np.clip(found, 1.0, dim)), number * (number - 1) / 2


def chi_square_quantiles(probability: FloatArray, freedom: float) -> FloatArray:
    """Quantiles of χ² (Wilson and Hilferty 1931)."""
    normal = np.array([NormalDist().inv_cdf(value) for value in probability])
    root = 1 - 2 / (9 * freedom) + normal * math.sqrt(2 / (9 * freedom))
    return np.asarray(freedom * np.maximum(root, 0.0) ** 3)


def _compute_normal_tail(normal: FloatArray) -> FloatArray:
    """Probability that a normal variable is larger, to seven digits (Press et al., Numerical Recipes, erfcc)."""
    size = np.abs(normal) / math.sqrt(2)
    step = 1 / (1 + 0.5 * size)
    half = 0.5 * step * np.exp(np.polynomial.polynomial.polyval(step, TAIL_COEFFICIENTS) - size * size)
    return np.where(normal >= 0, half, 1 - half)
