"""Workers of Dask and Spark that are killed in the middle of their work: no row is lost, or an error says so."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import crossfusion as cf
from crossfusion.io.sources.chunk import Source
from crossfusion.io.summarization import reduce_sources
from tests.helpers.spark_session import deadly, started
from tests.stress.judging import Broken

ROWS, PARTS = 4000, 40
X = np.random.default_rng(1).normal(size=(ROWS, 8))
SITE = np.array(["A", "B"])[np.arange(ROWS) % 2]


def prepare(_folder: Path) -> None:
    """Nothing: the rows are in memory."""


def parts(victim: int | None, flag: Path) -> Source:
    """Rows in parts, of which the reader of one is killed."""
    keys, size = pa.table({"site": SITE}), ROWS // PARTS
    cuts = [slice(k * size, (k + 1) * size) for k in range(PARTS)]
    return Source(
        "x",
        [partial(deadly, X[cut], keys[cut], "worker" if k == victim else "", flag) for k, cut in enumerate(cuts)],
        ROWS,
    )


def case(_folder: Path, own: Path, draw: np.random.Generator, number: int) -> str:
    """Kill whoever reads one of the parts; every third time in Spark."""
    source, flag = parts(int(draw.integers(PARTS)), own / "flag"), own / "flag"
    found = in_spark(source, own) if number % 3 == 1 else in_dask(source)
    if not flag.exists():
        raise Broken("nobody was killed")
    if isinstance(found, str):
        return found
    expected = cf.summarize(X, by={"site": SITE})
    if not (found.moments.count == expected.moments.count).all():
        raise Broken(f"{found.moments.count} rows instead of {expected.moments.count}")
    if not np.allclose(found.moments.mean, expected.moments.mean, rtol=1e-10, atol=1e-12):
        raise Broken("other means")
    return "Spark, right" if number % 3 == 1 else "Dask, right"


def in_dask(source: Source) -> Any:
    """Summary by two processes, one of which dies."""
    import dask
    from distributed import Client, LocalCluster

    quiet = {"distributed.worker.daemon": True, "distributed.logging.distributed": "critical"}
    with (
        dask.config.set(quiet),
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=60) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        return reduce_sources([source], engine=client)


def in_spark(source: Source, own: Path) -> Any:
    """Summary by Spark, which tries a part again where it may."""
    from crossfusion.io.engines import spark as engine
    from crossfusion.io.reduction import finish_summary

    with started(own, "local[2,3]"):
        return finish_summary(engine.run([source]), "raise")
