"""A Parquet file that several partitions read."""

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Any

from crossfusion._base import FileError
from crossfusion.io.sources import paths

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

MAX_SENT_FOOTER_BYTES = (
    2**13
)  # bytes of a footer that partitions carry to other processes; larger ones are read again there


class ParquetFile:
    """A file whose partitions share its footer and, where it is local, its map in memory, until all of them are read.

    Readers are not for several threads at once: who reads has one alone, which the next one takes over. Texts of the
    factors `by` stay encoded, so that a long one takes its memory once and not for each row.
    """

    def __init__(self, path: str, by: Sequence[str] = (), footer: "pq.FileMetaData | None" = None) -> None:
        self.path, self.by, self._footer = path, by, footer
        self._mapped: Any = None
        self._idle: list[pq.ParquetFile] = []  # readers of the map
        self._partitions = self._users = 0  # partitions to come, and who reads now
        self._stamp: tuple[int, int, int] | None = None  # of the file that was opened first
        self._lock = Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        small = self._footer is not None and self._footer.serialized_size <= MAX_SENT_FOOTER_BYTES
        return ParquetFile, (self.path, self.by, self._footer if small else None)

    @contextmanager
    def file(self) -> "Iterator[pq.ParquetFile]":
        """A reader of the file."""
        with ExitStack() as closing:
            with self._lock:
                reader = self._idle.pop() if self._idle else self._open_reader(closing)
                self._users += 1
                closing.callback(self._release, users=1)
            yield reader
            with self._lock:
                if self._mapped is not None:
                    self._idle.append(reader)

    def _open_reader(self, closing: ExitStack) -> "pq.ParquetFile":
        """A new reader, of the map if the file has one."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        with ExitStack() as stack:
            source = self._mapped or stack.enter_context(paths.open_arrow(self.path, mapped=True))
            self._footer = self._footer or pq.read_metadata(source)
            known = [name for name in self.by if name in self._footer.schema.names]  # others are refused by name later
            reader = pq.ParquetFile(source, metadata=self._footer, pre_buffer=False, read_dictionary=known)
            if isinstance(source, pa.MemoryMappedFile):
                self._check_unchanged()
                self._mapped = source
                stack.pop_all()  # readers keep the map, and the last of them lets go of it
            closing.push(stack.pop_all())
        return reader

    def _check_unchanged(self) -> None:
        """Refuse a file that is not the one that was opened first: its partitions would be those of another."""
        about = os.stat(self.path)
        stamp = about.st_ino, about.st_size, about.st_mtime_ns
        if self._stamp not in (None, stamp):
            raise FileError(paths.show_path(self.path), "has changed since it was opened", "start again")
        self._stamp = stamp

    def expect(self, partitions: int) -> None:
        """Keep the map, once there is one again, until so many partitions are done."""
        self._partitions = partitions

    def finish_partition(self) -> None:
        """Let go of the file after the last partition."""
        self._release(partitions=1)

    def _release(self, partitions: int = 0, users: int = 0) -> None:
        with self._lock:
            self._partitions -= partitions
            self._users -= users
            if self._partitions <= 0 and not self._users:
                self._mapped, self._idle = None, []
                if self._footer is not None and self._footer.serialized_size > MAX_SENT_FOOTER_BYTES:
                    self._footer = None  # of many files, these would fill the memory


def read_batches(
    file: "pq.ParquetFile", groups: Sequence[int], columns: Sequence[str], size: int
) -> "Iterator[pa.Table]":
    """Columns of some row groups, so many rows at a time."""
    import pyarrow as pa

    if sum(file.metadata.row_group(group).num_rows for group in groups) <= size:
        yield file.read_row_groups(list(groups), columns=list(columns), use_threads=False)
        return
    for batch in file.iter_batches(size, row_groups=list(groups), columns=list(columns), use_threads=False):
        yield pa.Table.from_batches([batch])


def read_keys(file: "pq.ParquetFile", groups: Sequence[int], by: Sequence[str]) -> "pa.Table":
    """The factors of some row groups, one value for each row."""
    keys = check_keys(file.read_row_groups(list(groups), columns=list(by), use_threads=False), by)
    number = sum(file.metadata.row_group(group).num_rows for group in groups)
    if keys.num_rows != number and by:
        raise ValueError(f"{keys.num_rows} values of factors for {number} rows")
    return keys


def check_keys(table: "pa.Table", by: Sequence[str]) -> "pa.Table":
    """The factors, whose bytes a damaged file may have mixed up."""
    keys = table.select(list(by))
    keys.validate(full=True)
    return keys
