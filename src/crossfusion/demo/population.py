"""A made-up multi-centre study whose population is known exactly.

A row is the embedding of an image tile. Its mean is a sum of effects of its tissue label, site, scanner and patient,
all drawn once; around it lies Gaussian noise with a decaying spectrum, wider in some tissues. Rows are independent
draws from a finite population of cells (site × scanner × label × patient), so means, variances and weights of every
group are known, and with them every Cross-Fusion Distance.

What is planted:

- tissues differ a lot, and each site sees another mix of them: Aarhus mostly tumour, Bonn mostly normal tissue;
- of the sites only Cork really differs;
- scanners differ in a few features alone.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from crossfusion._base import FloatArray
from crossfusion.moments import Moments
from crossfusion.summary import Summary

if TYPE_CHECKING:
    import pyarrow as pa

DIM = 256
FACTORS = ("site", "scanner", "label", "patient")
LABELS = ("tumour", "stroma", "lymphocytes", "necrosis", "normal")
SCANNERS = ("Lumen", "Opal", "Prisma")
NOISE_SPREAD = (1.2, 0.9, 0.8, 1.1, 0.9)  # standard deviation of the noise in each tissue, around 1
EFFECT_SIZES = {
    "label": 1.4,
    "scanner": 0.2,
    "patient": 0.25,
    "offset": 2.0,
}  # lengths of the effects; the noise is 1 long
NUMBER_OF_SCANNER_FEATURES = 6  # features that the scanners change


@dataclass(frozen=True)
class Site:
    """A hospital: its share of the rows, its patients, its scanners, its mix of tissues, and how far off it is."""

    name: str
    share: float
    patients: int
    scanners: tuple[str, ...]
    mix: tuple[float, ...]
    size: float


SITES = (
    Site("Aarhus", 0.40, 16, ("Lumen", "Opal"), (0.66, 0.14, 0.08, 0.08, 0.04), 0.04),
    Site("Bonn", 0.25, 12, ("Lumen", "Prisma"), (0.05, 0.15, 0.08, 0.04, 0.68), 0.04),
    Site("Cork", 0.12, 8, ("Opal", "Prisma"), (0.30, 0.30, 0.14, 0.06, 0.20), 0.33),
    Site("Delft", 0.23, 12, ("Lumen", "Opal", "Prisma"), (0.27, 0.32, 0.17, 0.06, 0.18), 0.04),
)


@dataclass(frozen=True)
class Truth:
    """What the rows were drawn from.

    Parameters
    ----------
    population : Summary
        The cells, with their probabilities in place of counts. The plug-in distances of this summary are the true ones.
    scanner_features : tuple of int
        The features that scanners change.
    """

    population: Summary
    scanner_features: tuple[int, ...]


def make_population(seed: int = 0, *, rows: int = 40_000) -> tuple["pa.Table", Truth]:
    """Draw a population, and rows from it.

    Examples
    --------
    >>> from crossfusion.demo import make_population
    >>> table, truth = make_population(rows=1000)
    >>> table.num_rows, truth.population.dim
    (1000, 256)
    >>> round(truth.population.cfd("site", given="label").distance, 3)
    0.019
    """
    of_effects, of_rows = np.random.default_rng(seed).spawn(2)
    cells = _draw_cells(of_effects)
    share = np.array([cell[-1] for cell in cells])
    keys = {name: np.array([cell[k] for cell in cells]) for k, name in enumerate(FACTORS)}
    basis = _draw_basis(of_effects)
    features = np.sort(of_effects.choice(DIM, NUMBER_OF_SCANNER_FEATURES, replace=False))
    mean = _draw_means(of_effects, keys, basis, features)
    spread = np.array(NOISE_SPREAD)[[LABELS.index(label) for label in keys["label"]]]
    variance = np.outer(spread**2, np.sum(basis**2, axis=0))
    truth = Truth(_make_summary(keys, share, mean, variance), tuple(features.tolist()))
    drawn = of_rows.choice(len(share), size=rows, p=share / share.sum())
    vectors = _draw_vectors(of_rows, mean[drawn], spread[drawn], basis)
    return _make_table({name: values[drawn] for name, values in keys.items()}, vectors), truth


def _draw_cells(rng: np.random.Generator) -> list[tuple[str, str, str, str, float]]:
    """Site, scanner, label, patient and probability of each cell; scanners take turns, every fourth patient has two."""
    cells = []
    for site in SITES:
        size = rng.lognormal(0.0, 0.6, site.patients)
        for number, weight in enumerate(site.share * size / size.sum()):
            patient = f"{site.name[0]}{number + 1:02d}"
            mix = rng.dirichlet(20 * np.array(site.mix))
            for turn, part in enumerate((0.65, 0.35) if number % 4 == 0 else (1.0,)):
                scanner = site.scanners[(number + turn) % len(site.scanners)]
                for label, share in zip(LABELS, mix, strict=True):
                    cells.append((site.name, scanner, label, patient, float(weight * part * share)))
    return cells


def _draw_basis(rng: np.random.Generator) -> FloatArray:
    """Principal axes of the noise as rows, as long as their standard deviations: variances fall as 1/j and sum to 1."""
    axes = np.linalg.qr(rng.standard_normal((DIM, DIM)))[0]
    variance = 1 / np.arange(1, DIM + 1)
    return np.asarray(axes * np.sqrt(variance / variance.sum())[:, None])


def _draw_means(
    rng: np.random.Generator, keys: dict[str, NDArray[np.str_]], basis: FloatArray, features: NDArray[np.int64]
) -> FloatArray:
    """Mean of each cell: an offset and the effects of its label, site, scanner and patient."""
    lengths = {site.name: site.size for site in SITES}
    mean = _draw_directions(rng, 1, basis) * EFFECT_SIZES["offset"]
    for name, values in keys.items():
        levels, code = np.unique(values, return_inverse=True)
        effect = _draw_directions(rng, len(levels), basis)
        if name == "scanner":
            effect = np.zeros((len(levels), DIM))
            effect[:, features] = _draw_directions(rng, len(levels), np.eye(len(features)))
        length = [lengths[site] for site in levels] if name == "site" else np.full(len(levels), EFFECT_SIZES[name])
        mean = mean + (effect * np.asarray(length)[:, None])[code]
    return np.asarray(mean)


def _draw_directions(rng: np.random.Generator, number: int, basis: FloatArray) -> FloatArray:
    """Random orthogonal vectors of length 1, along the axes in which the noise is large too."""
    return np.asarray(np.linalg.qr((rng.standard_normal((number, len(basis))) @ basis).T)[0].T)


def _draw_vectors(
    rng: np.random.Generator, mean: FloatArray, spread: FloatArray, basis: FloatArray
) -> NDArray[np.float32]:
    """Rows with these means and noise."""
    noise = rng.standard_normal(mean.shape, np.float32) @ basis.astype(np.float32)
    noise *= spread[:, None].astype(np.float32)
    noise += mean.astype(np.float32)
    return noise


def _make_summary(keys: dict[str, NDArray[np.str_]], share: FloatArray, mean: FloatArray, var: FloatArray) -> Summary:
    """The cells as a Summary in which probabilities take the place of counts."""
    import pyarrow as pa

    names = {name: pa.array(values.tolist()) for name, values in keys.items()}
    share = share / share.sum()
    return Summary(pa.table(names), Moments(share, mean, share[:, None] * var))


def _make_table(keys: dict[str, NDArray[np.str_]], rows: NDArray[np.float32]) -> "pa.Table":
    """Rows and their factors."""
    import pyarrow as pa

    vectors = pa.FixedSizeListArray.from_arrays(pa.array(rows.reshape(-1)), rows.shape[1])
    return pa.table({"embedding": vectors} | {name: pa.array(values.tolist()) for name, values in keys.items()})
