"""Spark tables: from a DataFrame, or from paths that Spark reads, to the columns that are needed and no others."""

import os
import re
import sys
from collections.abc import Sequence
from glob import iglob
from itertools import starmap
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from crossfusion._base import EngineError, FileError, optional
from crossfusion.io.sources import READERS
from crossfusion.io.sources.paths import check_no_table
from crossfusion.io.sources.vector_columns import find_vectors, has_feature_columns
from crossfusion.summary import storage

if TYPE_CHECKING:
    import pyarrow as pa

PURPOSE = "engine='spark'"
GLOB_SIGNS = "*?["
USUAL_PARALLELISM = 64
BEYOND_ASCII = re.compile(r"=.*%[89a-fA-F][0-9a-fA-F]")  # such as site=K%C3%B6ln, of which Spark makes "KÃ¶ln"
ILLEGAL_TYPE = "PARQUET_TYPE_ILLEGAL"  # what Spark says of types that it does not have, such as float16


class UnknownTypeError(FileError):
    """Data of types that Spark does not have, which executors can read by our own means."""


def parquet_paths(source: Any) -> list[str]:
    """Paths of Parquet files or folders, which Spark reads by itself; none where the source is anything else."""
    entries = source if isinstance(source, list | tuple) else [source]
    if not all(isinstance(entry, str | os.PathLike) for entry in entries):
        return []
    paths = [os.fspath(entry) for entry in entries]
    return paths if all(map(_is_parquet, paths)) else []


def _is_parquet(path: str) -> bool:
    ending = Path(path).suffix.lower()
    named = ending in storage.FILE_ENDINGS
    if "://" in path:
        return (named or ending not in READERS) and not BEYOND_ASCII.search(path)
    if ending in READERS and not named:
        return False
    places = list(iglob(path, recursive=True)) if any(sign in path for sign in GLOB_SIGNS) else [path]
    walked = (os.path.join(root, name) for place in places for root, _, names in os.walk(place) for name in names)
    found = [file for file in walked if file.lower().endswith(storage.FILE_ENDINGS)]
    return (named or bool(found)) and not any(map(BEYOND_ASCII.search, map(os.path.dirname, [*places, *found])))


def find_session() -> Any:
    """The session that is active, or one as this machine's settings make it."""
    sql = optional.load("pyspark.sql", "PySpark", "spark", PURPOSE)
    active = sql.SparkSession.getActiveSession()
    if active is not None:
        return active
    made = sql.SparkSession.builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    context = getattr(made, "_sc", None)  # none in Spark Connect
    if context is not None and context.master.startswith("local") and "PYSPARK_PYTHON" not in os.environ:
        context.pythonExec = sys.executable  # on this machine, the Python that has what is needed is this one
    return made


def count_cores(spark: Any) -> int:
    """Tasks that run at a time; where Spark does not tell, as many as a mid-sized cluster runs."""
    context = getattr(spark, "_sc", None)  # none in Spark Connect
    return int(context.defaultParallelism) if context is not None else USUAL_PARALLELISM


def read_parquet(spark: Any, paths: Sequence[str]) -> Any:
    """DataFrame of Parquet data, with the columns that folders such as ``site=A`` stand for."""
    bases = {_find_base(path) for path in paths}
    base = bases.pop() if len(bases) == 1 else None
    reader = spark.read if base is None else spark.read.option("basePath", base)
    errors = optional.load("pyspark.errors", "PySpark", "spark", PURPOSE)
    try:
        frame = reader.parquet(*paths)
    except errors.AnalysisException as problem:
        kind = UnknownTypeError if ILLEGAL_TYPE in str(problem) else FileError
        raise kind(", ".join(paths), f"cannot be read by Spark as Parquet ({_find_meaning(str(problem))})") from problem
    check_no_table(unquote(re.sub("^file:(//)?", "", file)) for file in frame.inputFiles())
    return frame


def _find_base(path: str) -> str | None:
    """The folder above the first one that stands for a value, so that Spark makes a column of this one too."""
    steps = path.split("/")
    named = [position for position, step in enumerate(steps) if "=" in step]
    return "/".join(steps[: named[0]]) or "." if named else None


def select_columns(frame: Any, by: Sequence[str], vectors: Any, holder: str) -> tuple[Any, list[str], bool]:
    """The factors and vectors of a DataFrame under plain names, the vectors' columns, and if each is a feature."""
    functions = optional.load("pyspark.sql.functions", "PySpark", "spark", PURPOSE)
    schema = _arrow_schema(frame.schema)
    columns = find_vectors(schema, by, vectors, holder)
    kinds = {field.name: field.dataType for field in frame.schema.fields}

    def column(position: int, name: str) -> Any:
        quoted = name.replace("`", "``")
        found = functions.col(f"`{quoted}`")
        found = _as_array(found) if _is_ml_vector(kinds[name]) else found
        return found.alias(f"c{position}")  # mapInArrow stumbles over names with a dot

    return frame.select(*starmap(column, enumerate([*by, *columns]))), columns, has_feature_columns(schema, columns)


def _as_array(column: Any) -> Any:
    """Array of a vector of Spark ML, dense or sparse; missing stays missing."""
    functions = optional.load("pyspark.sql.functions", "PySpark", "spark", PURPOSE)
    ml = optional.load("pyspark.ml.functions", "PySpark", "spark", "reading vectors of Spark ML")
    return functions.when(column.isNotNull(), ml.vector_to_array(column))


def _is_ml_vector(kind: Any) -> bool:
    return type(kind).__name__ == "VectorUDT"


def _arrow_schema(schema: Any) -> "pa.Schema":
    import pyarrow as pa

    return pa.schema([(field.name, _arrow_type(field.dataType)) for field in schema.fields])


def _arrow_type(kind: Any) -> "pa.DataType":
    """The Arrow type of numbers and of arrays of them; anything else serves as a factor only, as what it is."""
    import pyarrow as pa

    numbers = {
        "boolean": pa.bool_(),
        "byte": pa.int8(),
        "short": pa.int16(),
        "integer": pa.int32(),
        "long": pa.int64(),
        "float": pa.float32(),
        "double": pa.float64(),
    }
    if _is_ml_vector(kind):
        return pa.list_(pa.float64())
    if kind.typeName() == "array":
        return pa.list_(_arrow_type(kind.elementType))
    return numbers.get(kind.typeName(), pa.binary() if kind.typeName() == "binary" else pa.string())


def make_engine_error(problem: BaseException) -> EngineError:
    """One sentence for what Spark says in hundreds of lines."""
    text = str(problem)
    if "JAVA_GATEWAY_EXITED" in text or "JAVA_HOME" in text:
        return EngineError(
            "Spark did not start because it found no suitable Java",
            "install Java 17 or later and set JAVA_HOME",
        )
    said = _find_meaning(text)
    if "ModuleNotFoundError" in said:
        return EngineError(
            f"Spark's executors cannot load what they need ({said})",
            "install crossfusion where they run, or set PYSPARK_PYTHON to a Python that has it",
        )
    return EngineError(f"Spark did not finish, so there is no result ({said})", "see the log of Spark")


def _find_meaning(text: str) -> str:
    """The line that says what happened: the end of a traceback, or the last of the exceptions in the first line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()] or ["no reason given"]
    traced = [k for k, line in enumerate(text.splitlines()) if line.startswith("Traceback")]
    if traced:
        ends = [line for line in text.splitlines()[traced[-1] + 1 :] if line and not line[0].isspace()]
        return ends[0] if ends else lines[0]
    if lines[0].startswith("An error occurred while calling") and len(lines) > 1:
        lines = [lines[1].removeprefix(": "), *lines[2:]]
    return lines[0].rpartition("Exception: ")[2]
