"""Calls that write a file, and what the file has to be afterwards."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

import crossfusion as cf
from tests.stress import children, data
from tests.stress.judging import Broken, check_whole, outcome

OLD = slice(0, 30)


@dataclass(frozen=True)
class Writing:
    """A call, the file that it writes, and whether this begins with rows that are there already."""

    words: list[str]
    target: str
    adds: bool = False

    def begin(self, own: Path, old: bool) -> bytes | None:
        """Put an old file where it writes, or none; what is there."""
        path = own / self.target
        if not old:
            return None
        if path.suffix == ".parquet":
            of = {name: values[OLD] for name, values in data.BY.items() if name in ("site", "patient")}
            cf.summarize(data.X[OLD] + 9, by=of).write(path)
        else:
            path.write_text("<html>old</html>")
        return path.read_bytes()

    def state(self, own: Path, old: bytes | None) -> str:
        """Whether the old file is there, the new one, or none; anything else is a finding."""
        path = own / self.target
        if not path.exists():
            if old is None:
                return "none"
            raise Broken(f"{self.target} is gone")
        if path.read_bytes() == old:
            return "old"
        check_whole(path)
        if path.suffix == ".parquet" and self.rows(path) != self.expected(old is not None):
            raise Broken(f"{self.target} has {self.rows(path)} rows")
        return "new"

    def rows(self, path: Path) -> float:
        """Rows of a summary."""
        return float(cf.read_summary(path).moments.count.sum())

    def expected(self, old: bool) -> float:
        """Rows that there are in the end."""
        return data.ROWS + (OLD.stop if old and self.adds else 0)


def _call(text: str) -> Writing:
    words = text.split()
    return Writing(words, words[-1], "--append" in words)


WRITINGS = {
    "summarize": _call("summarize ../x.parquet --by site,patient -o own.parquet"),
    "append": _call("summarize ../x.parquet --by site,patient --append -o own.parquet"),
    "merge": _call("merge ../north.parquet ../south.parquet -o own.parquet"),
    "report": _call("report ../s.parquet --between site --units patient --permutations 99 -o own.html"),
    "report, rows": _call("report ../x.parquet --between site --permutations 49 -o own.html"),
    "picture": _call("matrix ../s.parquet --between site --plot own.png"),
}


def prepare(folder: Path) -> None:
    """The files, and what commands need in memory."""
    data.write_whole_files(folder)
    children.preload()
    seen = outcome(children.fork(["--version"], folder, folder / "logs").wait())
    if seen != "right":
        raise Broken("not even the version is said")


def pick(draw: np.random.Generator) -> Writing:
    """One of them."""
    return list(WRITINGS.values())[int(draw.integers(len(WRITINGS)))]


def rerun(call: Writing, folder: Path, own: Path, old: bytes | None, state: str) -> None:
    """Whatever happened before, the same call succeeds in the end, or says that it has been done."""
    ended = children.fork(call.words, own, folder / "logs").wait()
    done = call.adds and state == "new" and "already contains these rows" in ended.err
    if outcome(ended) != ("refused" if done else "right"):
        raise ended.broken("after a fault, the same call does not work")
    if call.state(own, old) != "new":
        raise ended.broken("after a fault, the same call leaves the old file")
