"""Files that are written whole or not at all."""

import os
import secrets
from collections.abc import Callable
from pathlib import Path

from crossfusion._base.errors import FileError


def write_whole(path: str | os.PathLike[str], write: Callable[[str], None], mark: str = "") -> None:
    """Write a file atomically: `write` fills a temporary file, which then replaces `path`.

    `mark` is in the temporary file's name.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        raise FileError(path, "cannot be written, as it is not a plain file", "choose another name")
    try:
        temporary = f"{make_temporary_prefix(target, mark)}{secrets.token_hex(8)}"
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        try:
            write(temporary)
            _sync(temporary, os.O_RDWR)
            os.replace(temporary, target)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
        if os.name == "posix":  # elsewhere a folder cannot be opened
            _sync(target.parent, os.O_RDONLY)
    except OSError as problem:
        raise make_write_error(path, problem) from problem


def make_write_error(path: str | os.PathLike[str], problem: OSError) -> FileError:
    """Make the error that says why a file cannot be written."""
    return FileError(path, f"cannot be written ({problem.strerror or problem})", "check the space and rights there")


def make_folder(folder: Path) -> Path:
    """Create a folder if it does not exist, and return it."""
    if folder.is_file():
        raise FileError(folder, "is a file", "name a folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise FileError(folder, f"cannot be made ({problem.strerror or problem})", "name another folder") from problem
    return folder


def make_temporary_prefix(target: Path, mark: str) -> str:
    """Make the prefix of the names of a target's temporary files."""
    return str(target.with_name(f".{target.name}.{mark}"))


def _sync(path: str | Path, flags: int) -> None:
    """Flush a file or folder to disk."""
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write text atomically."""

    def write(temporary: str) -> None:
        Path(temporary).write_text(text, encoding="utf-8", newline="\n")

    write_whole(path, write)


def check_folder(path: str | os.PathLike[str]) -> None:
    """Reject a file whose folder does not exist."""
    folder = Path(path).parent
    if not folder.is_dir():
        raise FileError(os.fspath(path), f"cannot be written: there is no folder {folder}", "make it first")
