"""What Spark costs for a row, beside the threads of this process: the same Parquet file, the same cores, both warm."""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from crossfusion import kernels, optional
from crossfusion.benchmarks.timing import best_times
from crossfusion.collect import summarize

ENGINES = ("local", "spark")
GROUPS = 20


def run(*, rows: int = 400_000, dim: int = 256, repeats: int = 3) -> dict[str, Any]:
    """Time for a row through Spark against the time for a row here, and what a job costs whatever its size.

    Parameters
    ----------
    rows : int
        Rows of the larger of two files; the smaller one, of a hundredth, tells the cost of a job.
    dim : int
        Features, as float32.
    repeats : int
        Rounds, in which the sides alternate; the best of each side counts.

    Returns
    -------
    dict
        A title, and the value of each measure.
    """
    threads = kernels.thread_count()
    with tempfile.TemporaryDirectory() as folder:
        files = {number: _file(Path(folder) / f"{number}.parquet", number, dim) for number in (rows // 100, rows)}
        spark, is_own = _session(threads)
        try:
            sides = {f"{engine}, {number}": _side(file, engine) for number, file in files.items() for engine in ENGINES}
            for work in sides.values():
                work()  # start workers, compile
            best = best_times(sides, repeats)
        finally:
            if is_own:
                spark.stop()
    few, here, there = rows // 100, best[f"local, {rows}"], best[f"spark, {rows}"]
    ours, theirs = ((best[f"{engine}, {rows}"] - best[f"{engine}, {few}"]) / (rows - few) for engine in ENGINES)
    return {
        "title": f"{rows:,} × {dim} float32 in Parquet, {threads} cores, best of {repeats}",
        "ratios": {
            "Spark's time for a row, in times of engine='local'": theirs / ours,
            "Spark's time for the whole file, in times of engine='local'": there / here,
        },
        "seconds": {"a job of Spark, whatever its size": best[f"spark, {few}"]},
        "microseconds a row": {"local": ours * 1e6, "spark": theirs * 1e6},
    }


def _side(file: str, engine: str) -> Any:
    return lambda: summarize(file, by="group", engine=engine)


def _file(path: Path, rows: int, dim: int) -> str:
    """Rows in groups that are as large as a Spark partition may well be."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    schema = pa.schema({"group": pa.int64(), "vector": pa.list_(pa.float32())})
    with pq.ParquetWriter(path, schema, compression="none", use_dictionary=False) as writer:
        for start in range(0, rows, 50_000):
            number = min(50_000, rows - start)
            values = pa.array(rng.standard_normal(number * dim, dtype=np.float32))
            offsets = pa.array(np.arange(number + 1, dtype=np.int32) * dim)
            columns = [pa.array(rng.integers(0, GROUPS, number)), pa.ListArray.from_arrays(offsets, values)]
            writer.write_table(pa.table(columns, schema=schema))
    return str(path)


def _session(threads: int) -> tuple[Any, bool]:
    """The active session, or one on this machine, and whether it is one of our own."""
    sql = optional.load("pyspark.sql", "PySpark", "spark", "the comparison with Spark")
    active = sql.SparkSession.getActiveSession()
    if active is not None:
        return active, False
    builder = sql.SparkSession.builder.master(f"local[{threads}]").config("spark.ui.enabled", "false")
    return builder.config("spark.ui.showConsoleProgress", "false").getOrCreate(), True
