"""Rows that a query selects, through DuckDB: Parquet and CSV files, S3, SQLite, Postgres with pgvector.

Nothing is installed without being asked: an extension that is not on the machine is fetched only by an `install` in the
query itself. With pgvector, whose vectors come as text such as "[0.1, 0.2]", the column is named in `vectors`::

    install postgres; load postgres;
    attach 'dbname=slides host=db.example' as pg (type postgres, read_only);
    select site, embedding::varchar as embedding from pg.public.tiles
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from crossfusion._base import InputError, first_line, optional
from crossfusion.io.sources.arrow_streams import (
    Stream,
    from_stream,
    list_stream_errors,
    open_duckdb_reader,
    run_relation,
)
from crossfusion.io.sources.chunk import Source

if TYPE_CHECKING:
    import pyarrow as pa

NAME = "the query"
CONFIG = {
    "autoinstall_known_extensions": "false",
    "python_enable_replacements": "false",  # names in the query are never variables of this program
}


def from_sql(query: str, by: Sequence[str], vectors: Any = None) -> Source:
    """Rows of the last statement of a query, which streams; the statements before it prepare it and run once."""
    if not isinstance(query, str) or not query.strip():
        raise InputError("sql", query, "is not a query", "pass a text that ends in a select")
    if any("\ud800" <= letter <= "\udfff" for letter in query):
        raise InputError("sql", problem="is not UTF-8 text", remedy="write it in that encoding")
    batches = _Query(query)
    return from_stream(Stream(batches.schema(), batches), by, vectors, NAME)


class _Query:
    """Batches of a query on a connection of its own; in another process it connects and prepares again."""

    def __init__(self, query: str) -> None:
        self._query = query
        self._result: Any = None

    def __getstate__(self) -> dict[str, Any]:
        return {"_query": self._query, "_result": None}  # a connection stays in its process

    def __call__(self, columns: list[str]) -> "pa.RecordBatchReader":
        return run_relation(self._prepare(), self.schema(), columns)

    def schema(self) -> "pa.Schema":
        """Columns of the result, which is not computed for this."""
        return open_duckdb_reader(self._prepare().limit(0), 1).schema

    def _prepare(self) -> Any:
        """The last statement, to be run whenever it is read."""
        if self._result is None:
            duckdb = optional.load("duckdb", "DuckDB", "sql", "sql")
            try:
                self._result = _prepare(duckdb.connect(":memory:", config=CONFIG), self._query)
            except list_stream_errors() as problem:
                raise InputError(
                    "sql", problem=f"cannot be run by DuckDB ({first_line(problem)})", remedy="fix the query"
                ) from problem
        return self._result


def _prepare(connection: Any, query: str) -> Any:
    """Run all statements but the last, and return that one as a relation."""
    statements = connection.extract_statements(query)
    if not statements or statements[-1].type.name not in ("SELECT", "CALL", "EXECUTE"):
        raise InputError("sql", problem="ends in a statement that gives no rows", remedy="end it with a select")
    connection.execute("set enable_progress_bar = false")  # which would be printed
    for statement in statements[:-1]:
        connection.execute(statement).fetchall()
    return connection.sql(statements[-1].query)
