"""Distances of resampled units, from the moments of the units."""

import numpy as np

from crossfusion._base import FloatArray
from crossfusion.fusion import Design, compute_stratum_means, split_by_stratum
from crossfusion.inference.permutation.exchangeable import encode_strata_sets
from crossfusion.inference.unit_errors import UnitMoments, estimate_unit_errors


def draw_multiplicities(units: UnitMoments, design: Design, draws: int, seed: int) -> FloatArray:
    """Draw how often each unit (columns) is in each resample (rows), among units of the same groups."""
    draw = np.random.default_rng(seed)
    times = np.zeros((draws, units.unit_count))
    kind = encode_strata_sets(units.unit, design.group[units.cell])
    for members in split_by_stratum(kind):
        times[:, members] = draw.multinomial(len(members), np.full(len(members), 1 / len(members)), draws)
    return times


def compute_replicates(units: UnitMoments, design: Design, weight: FloatArray, times: FloatArray) -> FloatArray:
    """Compute the distance of each resample at the design's weights, corrected for bias."""
    cells, stratum = design.cells, design.stratum
    errors = estimate_unit_errors(units, design, weight).errors
    shrinkage = 1.0
    if design.scale is not None:  # what `estimate_unit_errors` left of the variance between
        shrinkage = float(errors.between + errors.bias) / max(float(errors.total - 1), 1e-300)
    gap = units.moments.mean - cells.mean[units.cell]
    square = units.moments.sumsq.sum(axis=1) + units.moments.count * np.einsum("ij,ij->i", gap, gap)
    offset = cells.mean - compute_stratum_means(cells.mean, weight, stratum)[stratum]
    between, within, weights = np.zeros((3, len(times)))
    for members in split_by_stratum(stratum):
        total, center = np.zeros(len(times)), np.zeros((len(times), cells.dim))
        for cell in members:
            own = np.flatnonzero(units.cell == cell)
            often = times[:, units.unit[own]]
            rows = often @ units.moments.count[own]
            share = np.where(rows > 0, weight[cell], 0.0)  # a cell may be missing in a resample
            rows = np.maximum(rows, 1e-300)
            shift = (often @ (units.moments.count[own, None] * gap[own])) / rows[:, None]
            within += share * ((often @ square[own]) / rows - np.einsum("ij,ij->i", shift, shift))
            shift += offset[cell]
            between += share * np.einsum("ij,ij->i", shift, shift)
            center += share[:, None] * shift
            total += share
        between -= np.einsum("ij,ij->i", center, center) / np.maximum(total, 1e-300)
        weights += total
    scale = weights * float(np.sum(weight * cells.dispersion))
    bias, extra = 2 * errors.bias, 2 * (errors.within - 1)
    return np.asarray(np.log1p((shrinkage * between / scale - bias) / (within / scale + extra)))
