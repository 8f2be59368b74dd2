"""Rows as the commands read them: reduced to a summary, or whole."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crossfusion._base import NAN_OPTIONS, InputError, arg, check_lens, check_option, factors, map_rows, optional
from crossfusion.cli import output
from crossfusion.cli.options import NAMES_METAVAR, Decorator, split_names
from crossfusion.io import (
    READERS,
    Checkpoint,
    ManifestJoin,
    Rows,
    Source,
    align_features,
    check_only_matched,
    count_rows,
    describe_error,
    engines,
    from_sql,
    hold_in_memory,
    join,
    open_files,
    open_sources,
    paths,
    read_all,
    reduce_sources,
)
from crossfusion.summary import Summary, read_summary, storage

if TYPE_CHECKING:
    from crossfusion._base import CodeArray
    from crossfusion.lens import Lens

CONNECT_SECONDS = 10  # seconds that a Dask scheduler has to answer

file_argument = click.argument("file", metavar="[FILE_OR_SUMMARY]", required=False)
rows_argument = click.argument("file", metavar="[FILE]", required=False)


@dataclass(frozen=True)
class RowReader:
    """Where rows come from besides files, and how they are read."""

    vectors: str | list[str] | None = None
    nan: str = "raise"
    sql: tuple[str, ...] = ()
    manifest: str | None = None
    on: str | None = None
    only_matched: bool = False
    engine: str = "auto"
    by_position: bool = False
    lens: str | None = None
    groups: tuple[str, ...] = ()  # factors that are compared or adjusted for: a lens is fitted within their values

    def is_summary(self, file: str | None) -> bool:
        """Whether a file holds a summary."""
        return file is not None and storage.is_summary(file)

    def read_summary(self, file: str | None, by: Sequence[str]) -> Summary:
        """Read a summary, or make one of rows."""
        if file is None or not storage.is_summary(file):
            sources, joined = self.open_sources([] if file is None else [file], list(dict.fromkeys(by)))
            return self.summarize(sources, joined, lens=self.find_lens(sources, joined))
        self._check()
        if self.sql or self.manifest is not None:
            raise InputError(
                problem=f"{file} is a summary, without rows to add to",
                remedy=f"leave out {arg('sql')} and {arg('manifest')}",
            )
        if self.nan != "raise" or self.engine not in ("auto", "local"):
            raise InputError(
                problem=f"{file} is a summary, whose rows have been read",
                remedy=f"leave out {arg('nan')} and {arg('engine')}",
            )
        if self.vectors is not None or self.by_position:
            raise InputError(
                problem=f"{file} is a summary, whose vectors were chosen when it was made",
                remedy=f"leave out {arg('by_position' if self.vectors is None else 'vectors')}",
            )
        if self.lens is not None:
            raise InputError(
                problem=f"{file} is a summary, whose rows were mapped before it was made",
                remedy=f"leave out {arg('lens')}, or name the file of the rows",
            )
        return read_summary(file)

    def find_lens(self, sources: Sequence[Any], joined: ManifestJoin | None = None) -> "Lens | None":
        """The lens that is asked for: from a file, or of a name, fitted on these sources."""
        if self.lens is None:
            return None
        from crossfusion.lens import LENS_ENDING, Training, fit_named, read

        if self.lens.lower().endswith(LENS_ENDING) or Path(self.lens).is_file():
            return read(self.lens)
        if not all(isinstance(source, Source) for source in sources):
            raise InputError(
                "lens",
                self.lens,
                "cannot be fitted on what Spark reads by itself",
                "fit it with 'crossfusion lens fit', and name its file",
            )
        return fit_named(self.lens, Training(sources, self.groups, self.nan, joined=joined))

    def _check(self) -> str:
        """Refuse options that do not go together, or name no engine; the engine that is meant, but for its address."""
        check_option(self.nan, NAN_OPTIONS, "nan")
        if self.on is not None and self.manifest is None:
            raise InputError("on", self.on, "names the key column of a manifest", f"give {arg('manifest')} too")
        check_only_matched(self.only_matched, self.on)
        return str(engines.choose_engine("dask" if "://" in self.engine else self.engine, None))

    def open_sources(self, files: Sequence[str], by: Sequence[str]) -> tuple[Sequence[Any], ManifestJoin | None]:
        """Sources of files and queries, with these factors."""
        names, engine = list(by), self._check()
        if not files and not self.sql:
            raise InputError(
                problem="there is nothing to read", remedy=f"name a file, or give a query with {arg('sql')}"
            )
        if names and not self.sql:
            options = {"by_position": self.by_position, "only_matched": self.only_matched}
            return open_sources(list(files), names, self.vectors, self.manifest, self.on, engine, **options)
        if self.manifest is not None:
            opened = partial(self._open_rows, files)
            joined = join(opened, self.manifest, self.on, names, only_matched=self.only_matched)
            return joined.sources, joined
        return self._open_rows(files, names), None

    def _open_rows(self, files: Sequence[str], names: Sequence[str], keep: Any = None) -> list[Source]:
        opened = open_files(files, names, self.vectors, by_position=self.by_position, keep=keep)
        queries = [from_sql(query, names, self.vectors) for query in self.sql]

        def reopen(position: int, _source: Source, features: Sequence[str]) -> Source:
            return from_sql(self.sql[position - len(opened)], names, list(features))

        return align_features([*opened, *queries], reopen, by_position=self.by_position)

    def make_checkpoint(
        self, path: Path, files: Sequence[str], by: Sequence[str], lens: "Lens | None" = None
    ) -> Checkpoint | None:
        """Where what is done of a long read is kept; None where nothing tells whether the files are the same."""
        if self.sql or self.manifest is not None or self.engine not in ("auto", "local"):
            return None
        stamps = stamp_files(files)
        about = [list(by), self.vectors, self.nan, self.by_position, None if lens is None else lens.digest]
        return None if stamps is None else Checkpoint(path, [*about, stamps])

    def summarize(
        self,
        sources: Sequence[Any],
        joined: ManifestJoin | None = None,
        keeper: Checkpoint | None = None,
        lens: "Lens | None" = None,
    ) -> Summary:
        """Summary of sources through a lens, if there is one, with notes and a bar while they are read."""
        output.show_notes(getattr(source, "note", "") for source in sources)
        with output.show_progress("reading", count_rows(sources)) as progress:
            work: dict[str, Any] = {"nan": self.nan, "progress": progress, "joined": joined, "lens": lens}
            if "://" not in self.engine:
                engine = engines.choose_engine(self.engine, None)
                return reduce_sources(sources, engine=engine, keeper=keeper, **work)
            with _connect(self.engine) as client:
                return reduce_sources(sources, engine=client, **work)

    def read_rows(self, file: str | None, by: Sequence[str]) -> Rows:
        """All rows in one array, and their factors."""
        if self._check() != "local":
            raise InputError(
                "engine",
                problem="cannot be used where all rows are needed at once",
                remedy=f"name {arg('units')}, or leave out {arg('level')} and {arg('permutations')}",
            )
        sources, joined = self.open_sources([] if file is None else [file], list(dict.fromkeys(by)))
        output.show_notes(source.note for source in sources)
        lens = self.find_lens(sources, joined)
        check_lens(lens, adds_factors=False)
        rows = read_all(sources, joined, self.nan)
        if lens is None:
            return rows
        features = lens.name_features(rows.features, str(file)) or ()
        return replace(rows, x=map_rows(lens, rows.x, str(file)), features=features)

    def read_groups(
        self, file: str | None, between: Sequence[str], given: Sequence[str]
    ) -> "tuple[Summary, Any, CodeArray, CodeArray | None]":
        """Summary by some factors, the rows, and the code of each row's group and, if there are any, stratum."""
        rows = self.read_rows(file, [*between, *given])
        group, _ = factors.encode(rows.keys.select(list(between)))
        stratum = factors.encode(rows.keys.select(list(given)))[0] if given else None
        return reduce_sources([hold_in_memory(str(file), rows.x, rows.keys, rows.features)]), rows.x, group, stratum


def stamp_files(files: Sequence[str]) -> list[tuple[str, int, int]] | None:
    """Path, size and time of all files; None where one is remote, or a folder that is read as a file."""
    found = [file for path in files for file in paths.find_files(path, READERS).files]
    if any(paths.is_remote(file.path) or not Path(file.path).is_file() for file in found):
        return None
    stats = [(file.path, Path(file.path).stat()) for file in found]
    return [(path, stat.st_size, stat.st_mtime_ns) for path, stat in stats]


def _connect(address: str) -> Any:
    """Client of the Dask scheduler at an address."""
    client_type = optional.load("distributed", "distributed", "dask", "--engine with an address").Client
    client = client_type.__new__(client_type)
    try:
        client.__init__(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except BaseException as problem:
        client.status = "closed"  # otherwise it waits, when it is deleted, for the connection that it never had
        if not isinstance(problem, Exception):
            raise
        raise InputError(
            "engine",
            address,
            f"is not a Dask scheduler that answers ({describe_error(problem)})",
            "write tcp://host:port of one",
        ) from problem
    return client


def _parse_vectors(context: Any, parameter: click.Parameter, values: Sequence[str]) -> str | list[str] | None:
    """Names of columns as the library takes them: one, several, or none."""
    names = split_names(context, parameter, values)
    return names if len(names) > 1 else names[0] if names else None


def _find_groups(arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """Factors whose values a command compares or adjusts for, by the names that its parameters have."""
    compared = next((name for name in ("by", "between", "levels", "time", "batch") if arguments.get(name)), "")
    values = [arguments.get(name) or () for name in (compared, "given", "label")]
    names = [name for value in values for name in ([value] if isinstance(value, str) else value)]
    return tuple(dict.fromkeys(names))


SHARED_OPTIONS = {
    "vectors": click.option(
        "--vectors",
        multiple=True,
        callback=_parse_vectors,
        metavar=NAMES_METAVAR,
        help="Column of embeddings, columns of numbers, or a pattern such as 'dim_*'; detected if unambiguous.",
    ),
    "nan": click.option(
        "--nan",
        default="raise",
        show_default=True,
        metavar="raise|drop",
        help="Reject or drop rows with NaN or infinity.",
    ),
    "sql": click.option(
        "--sql", multiple=True, metavar="QUERY", help="Read the result of a DuckDB query; may be repeated."
    ),
    "manifest": click.option("--manifest", metavar="FILE", help="A separate table with factors."),
    "on": click.option(
        "--on", metavar="NAME", help="Key column of the manifest; without it, rows are matched by position."
    ),
    "only_matched": click.option(
        "--only-matched", is_flag=True, help="Leave out files and rows that the manifest does not name in --on."
    ),
    "engine": click.option(
        "--engine",
        default="auto",
        show_default=True,
        metavar="local|dask|spark|ADDRESS",
        help="Where rows are read: threads, Dask, Spark, or the Dask scheduler at ADDRESS.",
    ),
    "lens": click.option(
        "--lens",
        metavar="FILE|NAME",
        help="Map rows by the lens in FILE, or fitted on these rows: unit, standardize, whiten, kernel, codebook.",
    ),
    "by_position": click.option(
        "--by-position",
        is_flag=True,
        help="Match features without names to named ones by position.",
    ),
}


def reading_options(*names: str) -> Decorator:
    """Options of how rows are read, passed on as one argument; all of them, or those that are named."""
    chosen = names or tuple(SHARED_OPTIONS)

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def run(**arguments: Any) -> Any:
            chosen_values = {name: arguments.pop(name) for name in chosen}
            read = RowReader(**chosen_values, groups=_find_groups(arguments))
            return command(**arguments, read=read)

        wrapped: Callable[..., Any] = run
        for name in reversed(chosen):
            wrapped = SHARED_OPTIONS[name](wrapped)
        return wrapped

    return decorate
