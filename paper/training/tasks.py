"""What is learnt from where: sources with labels, and a target whose labels are for the end alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from crossfusion.study import digest
from paper.real.folder import PLACES, read_embeddings
from paper.training.scanners import SCANNERS, load_digits, simulate_scan

HELD = 0.2  # share of the rows of a source that are not trained on
UNLABELLED = 0.5  # share of the target's rows that are trained on, without their labels
UNKNOWN = -1  # a label that is not to be seen
DIGITS, LEFT_OUT = "digits", "pacs_left_out"
TABLES = ("pacs", "office_caltech")


@dataclass(frozen=True)
class Pool:
    """All rows of a data set.

    Parameters
    ----------
    x : array
        Vectors, or images of shape (rows, height, width).
    label, domain : array of int
        Of each row.
    domains : tuple of str
        Names of the domains.
    """

    x: NDArray[np.float32]
    label: NDArray[np.int64]
    domain: NDArray[np.int64]
    domains: tuple[str, ...]

    @property
    def classes(self) -> int:
        """Number of labels."""
        return int(self.label.max()) + 1

    @property
    def digest(self) -> str:
        """A short name for all of it."""
        return digest([self.x, self.label.tolist(), self.domain.tolist(), self.domains])


class Task(NamedTuple):
    """From where to where."""

    group: str
    sources: tuple[str, ...]
    target: str

    @property
    def adapts(self) -> bool:
        """Whether rows of the target, without labels, are there in training."""
        return self.group != LEFT_OUT

    @property
    def name(self) -> str:
        """For people."""
        return f"{self.sources[0]} → {self.target}" if self.adapts else f"all others → {self.target}"


class Rows(NamedTuple):
    """Rows with their labels, UNKNOWN where they are not to be seen, and domains."""

    x: Tensor
    label: Tensor
    domain: Tensor


class Split(NamedTuple):
    """Rows of a task as one seed splits them: to train on (a part a domain), held out of the sources, of the target."""

    train: list[Rows]
    held: Rows
    test: Rows
    classes: int


def read_pools(folder: Path | None) -> dict[str, Pool]:
    """The digits, and the tables of embeddings that the folder holds."""
    images, label = load_digits()
    half = np.arange(len(images)) % 2  # no image is seen by both scanners
    x = np.where(half[:, None, None] == 0, images, simulate_scan(images))
    pools = {DIGITS: Pool(x, label, half, SCANNERS)}
    for name in TABLES:
        if folder is not None and (folder / PLACES[name]).is_file():
            pools[name] = _table(folder / PLACES[name])
    return pools


def _table(path: Path) -> Pool:
    found = read_embeddings(path, ["domain", "label"])
    domains, domain = np.unique(found.factors["domain"], return_inverse=True)
    _, label = np.unique(found.factors["label"], return_inverse=True)
    return Pool(found.x, label.astype(np.int64), domain.astype(np.int64), tuple(map(str, domains)))


def list_tasks(pools: dict[str, Pool], whole: bool) -> list[Task]:
    """Each domain to the next, in a circle, so that each is once the source and once the target; and all but one."""
    found = [Task(DIGITS, SCANNERS[:1], SCANNERS[1])]
    for name in TABLES:
        if name in pools:
            names = pools[name].domains
            pairs = zip(names, names[1:] + names[:1], strict=True)
            found += [Task(name, (a,), b) for a, b in pairs][: None if whole else 1]
    if "pacs" in pools:
        names = pools["pacs"].domains
        found += [Task(LEFT_OUT, tuple(n for n in names if n != out), out) for out in names][: None if whole else 1]
    return found


def find_pool(pools: dict[str, Pool], task: Task) -> Pool:
    """The rows of a task."""
    return pools["pacs" if task.group == LEFT_OUT else task.group]


def split_rows(pool: Pool, task: Task, seed: int) -> Split:
    """Split the rows of a task, and bring them to the centre and scale of the sources' rows to train on.

    Parameters
    ----------
    pool : Pool
        All rows.
    task : Task
        From where to where.
    seed : int
        Of the split.

    Returns
    -------
    Ready
        The target's rows to train on have no labels; where the target is left out, there are none.
    """
    draw = np.random.default_rng(seed)
    shuffled = [draw.permutation(np.flatnonzero(pool.domain == k)) for k in range(len(pool.domains))]
    sources = [shuffled[pool.domains.index(name)] for name in task.sources]
    target = shuffled[pool.domains.index(task.target)]
    held = [rows[: round(HELD * len(rows))] for rows in sources]
    train = [rows[round(HELD * len(rows)) :] for rows in sources]
    seen = round(UNLABELLED * len(target)) if task.adapts else 0
    centre, scale = _scale(pool.x[np.concatenate(train)])

    def rows(parts: Sequence[NDArray[np.int64]], first: int = 0, labelled: bool = True) -> Rows:
        at = np.concatenate(parts)
        domain = np.repeat(np.arange(first, first + len(parts)), [len(part) for part in parts])
        label = pool.label[at] if labelled else np.full(len(at), UNKNOWN)
        return Rows(torch.from_numpy((pool.x[at] - centre) / scale), torch.from_numpy(label), torch.from_numpy(domain))

    last = len(sources)
    parts = [rows([part], k) for k, part in enumerate(train)]
    parts += [rows([target[:seen]], last, labelled=False)] if seen else []
    return Split(parts, rows(held), rows([target[seen:]], last), pool.classes)


def _scale(x: NDArray[np.float32]) -> tuple[NDArray[np.float32], np.float32]:
    """Mean, and one scale for all features, so that nothing is aligned by it."""
    centre = x.mean(axis=0)
    return centre, np.float32(np.sqrt(np.mean((x - centre) ** 2)))
