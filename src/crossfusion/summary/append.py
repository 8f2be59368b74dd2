"""Append to a summary on disk, safely with several writers and after crashes."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from crossfusion._base import (
    FileError,
    InputError,
    arg,
    check_same_factors,
    check_same_lens,
    check_same_tags,
    check_wait,
    files,
    match_features,
)
from crossfusion.summary import storage
from crossfusion.summary.feature_alignment import align_features, check_all_named
from crossfusion.summary.merge import check_disjoint, record_batch
from crossfusion.summary.summary import Summary, combine, read_summary, write_summary

WAIT_SECONDS = 60.0  # seconds
TEMPORARY_MARK = "append-"  # in the names of temporary files written under the lock
NEW_NAME = "what is new"


def append_summary(
    summary: Summary, path: str | os.PathLike[str], *, wait: float = WAIT_SECONDS, by_position: bool = False
) -> Summary:
    """Add a summary of new rows to a summary file; several processes may do so at the same time.

    Parameters
    ----------
    summary : Summary
        Summary of rows that the file does not contain yet.
    path : path
        Summary file with the same features, factors, tags and lens; created if it does not exist.
    wait : float
        Seconds to wait while other processes write to the file.
    by_position : bool
        Whether features without names stand for the named features in the same position, such as those of a file
        written before version 0.2. By default, features are matched by name, and a mix of both is rejected.

    Returns
    -------
    Summary
        The new content of the file.

    Raises
    ------
    FileError
        If the file is damaged, locked for longer than `wait` seconds, cannot be written, or already contains these
        rows.
    InputError
        If features, factors, tags or lenses differ.

    Notes
    -----
    The lock file ``.NAME.lock`` beside the file is held while the file is read and replaced; `Summary.write` does not
    wait for it. A process killed at any point leaves either the old file or the new one, and at most one temporary
    file, which the next append removes.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import crossfusion as cf
    >>> monday = cf.summarize([[0.0], [2.0]], by={"site": ["A", "B"]})
    >>> tuesday = cf.summarize([[4.0], [5.0]], by={"site": ["B", "C"]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for day in (monday, tuesday):
    ...         total = cf.append_summary(day, Path(folder) / "week.parquet")
    >>> total
    Summary of 3 groups by site: 4 rows × 1 feature (float64)
    site  count  dispersion
    A         1           0
    B         2       1.000
    C         1           0
    """
    check_wait(wait)
    if not isinstance(summary, Summary):
        raise InputError(
            "summary",
            problem=f"must be a Summary, not a {type(summary).__name__}",
            remedy="pass what summarize returns",
        )
    storage.check_ending(path)
    new = record_batch(summary)
    with _lock(path, wait):
        _remove_leftovers(path)
        total = _add(new, path, by_position) if os.path.exists(path) else new
        write_summary(total, path, TEMPORARY_MARK)
    return total


def check_appendable(path: str | os.PathLike[str], factors: Sequence[str], tags: Mapping[str, str]) -> None:
    """Reject, before rows are read, factors and tags that cannot be added to a file."""
    if os.path.exists(path):
        check_same_factors({NEW_NAME: factors, str(path): storage.read_factors(path)})
        check_same_tags({NEW_NAME: tags, str(path): storage.read_header(path)["tags"]})


def check_appendable_features(
    path: str | os.PathLike[str], features: tuple[str, ...] | None, *, by_position: bool = False
) -> None:
    """Reject, before rows are read, features that cannot be added to a file."""
    if os.path.exists(path):
        old, new = storage.read_header(path)["features"], None if features is None else tuple(features)
        check_all_named([old, new], [str(path), NEW_NAME], by_position=by_position)
        if old is not None and new is not None:
            match_features(tuple(old), new, str(path), NEW_NAME)


def check_appendable_lens(path: str | os.PathLike[str], lens: str | None) -> None:
    """Reject, before rows are read, the digest of another lens than that of a file."""
    if os.path.exists(path):
        check_same_lens({str(path): storage.read_header(path)["lens"], NEW_NAME: lens})


def _add(new: Summary, path: str | os.PathLike[str], by_position: bool) -> Summary:
    old = record_batch(read_summary(path))
    if set(old.batches) & set(new.batches):
        raise FileError(path, "already contains these rows", "nothing was added")
    names = [str(path), NEW_NAME]
    total = combine([old, new], names, by_position=by_position)
    check_disjoint(align_features([old, new], names, by_position=by_position), names)
    return total


@contextmanager
def _lock(path: str | os.PathLike[str], wait: float) -> Iterator[None]:
    """Lock the file against other appends; the system releases the lock if the process dies."""
    from filelock import FileLock, Timeout

    target = Path(os.path.realpath(path))
    files.check_folder(target)
    place = files.make_temporary_prefix(target, "lock")
    lock = FileLock(place)
    try:
        os.close(os.open(place, os.O_CREAT | os.O_RDWR, 0o666))  # what is in the way of this is not worth a wait
        lock.acquire(timeout=wait)
    except Timeout as problem:
        raise FileError(
            path,
            f"is being written to by another process, and still was after {arg('wait', wait)} seconds",
            "wait longer, or try again",
        ) from problem
    except OSError as problem:
        raise files.make_write_error(path, problem) from problem
    try:
        yield
    finally:
        lock.release()


def _remove_leftovers(path: str | os.PathLike[str]) -> None:
    """Delete temporary files of killed processes; under the lock, none is in use."""
    start = Path(files.make_temporary_prefix(Path(os.path.realpath(path)), TEMPORARY_MARK))
    with suppress(OSError):  # what is in the way of that will be in the way of writing, and said there
        for file in start.parent.iterdir():
            if file.name.startswith(start.name):
                file.unlink()
