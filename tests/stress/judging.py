"""What may come of a command: a right result, or one line that says what is wrong; and whole files."""

import json
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import crossfusion as cf
from crossfusion.summary import storage

NOTES = ("crossfusion: warning: ", "crossfusion: went on after ", "crossfusion: what is done is in ")
TALK = ("Usage: ", "crossfusion, version", "#compdef", "_crossfusion", "function _crossfusion")


class Broken(AssertionError):  # noqa: N818 - as it is said
    """What nobody should have to see."""


@dataclass(frozen=True)
class Ended:
    """How a process or a call of the command line ended."""

    words: list[str]
    code: object
    out: str
    err: str

    def broken(self, what: str) -> Broken:
        """An error that tells what was called and what was seen."""
        words = " ".join(word if word.isprintable() and word and " " not in word else repr(word) for word in self.words)
        return Broken(f"{what}: crossfusion {words[:600]} -> {self.code}, {self.out[:200]!r}, {self.err[-900:]!r}")

    @property
    def is_json(self) -> bool:
        """Whether JSON was asked for: not as the value of an option, nor beside a question for help."""
        pairs = zip(["", *self.words], self.words, strict=False)
        asked = any(word == "--json" and not before.startswith("-") for before, word in pairs)
        return asked and not self.out.startswith(TALK)

    @property
    def said(self) -> list[str]:
        """Lines of standard error that are neither warnings nor notes."""
        return [line for line in self.err.splitlines() if not line.startswith(NOTES)]


def outcome(ended: Ended, tolerated: str = "") -> str:
    """Whether a command was right or refused; lines that match `tolerated` are of libraries that cannot be silenced."""
    said = [line for line in ended.said if not (tolerated and re.match(tolerated, line))]
    if "Traceback" in ended.err or "\x1b" in ended.err:
        raise ended.broken("a traceback or an escape")
    if ended.code == 0 or (ended.code == 1 and ended.words[:1] == ["drift"]):
        if said:
            raise ended.broken("words on standard error")
        if ended.is_json:
            check_json(ended)
        return "alarm" if ended.code else "right"
    if ended.code == 2 and not said and ended.out.startswith("Usage: "):
        return "refused"
    if ended.code != 2 or len(said) != 1 or not said[0].startswith("crossfusion: ") or ended.out:
        raise ended.broken("not one line and exit code 2")
    if not said[0].isprintable() or len(said[0].strip()) < 20:
        raise ended.broken("a line that does not help")
    return "refused"


def check_json(ended: Ended) -> Any:
    """JSON with finite numbers; infinity is a text there."""
    try:
        found = json.loads(ended.out, parse_constant=lambda word: 1 / 0)
    except (ValueError, ZeroDivisionError) as problem:
        raise ended.broken(f"no JSON ({problem})") from problem
    if not _finite(found):
        raise ended.broken("a number that is not finite")
    return found


def _finite(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(_finite, value.values()))
    if isinstance(value, list):
        return all(map(_finite, value))
    return not isinstance(value, float) or math.isfinite(value)


def check_whole(path: Path) -> None:
    """Refuse a file that is not all there, by its ending."""
    data = path.read_bytes()
    kind = path.suffix.lower()
    if kind in (".parquet", ".pq"):
        try:
            cf.read_summary(path) if storage.is_summary(path) else pq.read_table(path)
        except (cf.CrossfusionError, pa.ArrowException, OSError) as problem:
            raise Broken(f"{path.name} is half a table: {problem}") from problem
    ends = {".html": b"</html>", ".svg": b"</svg>", ".pdf": b"%%EOF", ".png": b"IEND\xaeB`\x82"}
    if kind in ends and not data.rstrip().endswith(ends[kind]):
        raise Broken(f"{path.name} is half a file: {len(data)} bytes")


def snapshot(folder: Path) -> dict[str, bytes]:
    """All files of a folder but locks."""
    files = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files if not path.name.endswith(".lock")}


def check_files(folder: Path, before: dict[str, bytes], ended: str) -> None:
    """After a refusal nothing is changed; after anything else, what is new is whole; and never is there litter."""
    after = snapshot(folder)
    new = [name for name, data in after.items() if before.get(name) != data]
    if ended == "refused" and (new or before.keys() - after.keys()):
        raise Broken(f"refused, but {new or before.keys() - after.keys()} changed")
    for name in new:
        if Path(name).name.startswith("."):
            raise Broken(f"{name} was left")
        check_whole(folder / name)
