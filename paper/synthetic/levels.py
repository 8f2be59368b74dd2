"""What the trials say: means with their Monte Carlo errors, changes relative to the first level, sensitivities."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from paper.synthetic.measures import NAMES

if TYPE_CHECKING:
    import pyarrow as pa

Numbers = NDArray[np.float64]
GROUP = ("experiment", "variant", "dim", "size")
CLEAR = 3.0  # standard errors that a mean must lie above zero before anything is divided by it


def levels(table: "pa.Table") -> "pa.Table":
    r"""Summary of the trials, a row a level and measure.

    Parameters
    ----------
    table : pyarrow.Table
        What `run` returned.

    Returns
    -------
    pyarrow.Table
        Columns experiment, variant, dim, size, measure, level, trials; ``mean``, ``sd`` and ``stderr`` over trials;
        ``relative`` with ``relative_stderr``; ``sensitivity`` and ``sensitivity_overall``.

    Notes
    -----
    With m_k the mean at level x_k, ``relative`` is the ratio of means m_k/m_1. Levels of a trial share their random
    numbers, so its error is that of a ratio of paired means (delta method): sd(y_k - r y_1) / (m_1 √trials).

    ``sensitivity`` is the paper's: fractional change of the measure over fractional change of the factor,

    .. math:: \frac{(m_k - m_{k-1})/m_{k-1}}{(x_k - x_{k-1})/x_{k-1}}

    from the previous level, and ``sensitivity_overall`` the same from the first. What would divide by zero, or by a
    mean less than three standard errors above it, is null.
    """
    import pyarrow as pa

    rows = [row for group, levels_there, values in _groups(table) for row in _summary(group, levels_there, values)]
    return pa.Table.from_pylist(rows, _schema())


def _schema() -> "pa.Schema":
    import pyarrow as pa

    text, whole, number = pa.string(), pa.int64(), pa.float64()
    keys = zip((*GROUP, "measure"), (text, text, whole, whole, text), strict=True)
    numbers = ("mean", "sd", "stderr", "relative", "relative_stderr", "sensitivity", "sensitivity_overall")
    return pa.schema([*keys, ("level", number), ("trials", whole), *((name, number) for name in numbers)])


def _groups(table: "pa.Table") -> Iterator[tuple[dict[str, Any], Numbers, Numbers]]:
    """Each measure of each setting: what it is, its levels, and its values (levels × trials)."""
    import pyarrow.compute as pc

    for key in table.select(list(GROUP)).group_by(list(GROUP), use_threads=False).aggregate([]).to_pylist():
        chosen = table
        for name, value in key.items():
            chosen = chosen.filter(pc.equal(chosen.column(name), value))
        chosen = chosen.sort_by("trial")
        level = chosen.column("level").to_numpy()
        grid = np.array(list(dict.fromkeys(level.tolist())))
        for measure in NAMES:
            values = chosen.column(measure).to_numpy()  # null is NaN
            if not np.isnan(values).all():
                yield key | {"measure": measure}, grid, np.stack([values[level == each] for each in grid])


def _summary(group: dict[str, Any], grid: Numbers, values: Numbers) -> Iterator[dict[str, Any]]:
    trials = values.shape[1]
    mean = values.mean(axis=1)
    sd = values.std(axis=1, ddof=1) if trials > 1 else np.full(len(grid), np.nan)
    stderr = sd / np.sqrt(trials)
    divisor = np.where(mean > CLEAR * np.nan_to_num(stderr), mean, np.nan)
    relative, relative_stderr = _divide_by_first(values, divisor[0])
    columns = {
        "level": grid,
        "mean": mean,
        "sd": sd,
        "stderr": stderr,
        "relative": relative,
        "relative_stderr": relative_stderr,
        "sensitivity": _sensitivity(grid, mean, divisor, np.maximum(np.arange(len(grid)) - 1, 0)),
        "sensitivity_overall": _sensitivity(grid, mean, divisor, np.zeros(len(grid), int)),
    }
    for k in range(len(grid)):
        numbers = {name: float(column[k]) for name, column in columns.items()}
        yield group | {"trials": trials} | {name: None if np.isnan(x) else x for name, x in numbers.items()}


def _divide_by_first(values: Numbers, first: float) -> tuple[Numbers, Numbers]:
    """Ratios of the means to the first one, and their standard errors."""
    ratio = values.mean(axis=1) / first
    if values.shape[1] < 2:
        return ratio, np.full(len(values), np.nan)
    rest = values - ratio[:, None] * values[0]
    return ratio, rest.std(axis=1, ddof=1) / first / np.sqrt(values.shape[1])


def _sensitivity(grid: Numbers, mean: Numbers, divisor: Numbers, base: NDArray[np.intp]) -> Numbers:
    """Fractional change of the measure over that of the factor, from the level `base` of each level."""
    start = np.where(grid == 0, np.nan, grid)[base]
    factor = (grid - start) / start
    return (mean - mean[base]) / divisor[base] / np.where(factor == 0, np.nan, factor)
