"""What a summary costs on many workers: bytes read, moments moved, memory, time."""

from dataclasses import dataclass
from math import ceil, log

FAN_IN = 8  # summaries merged at a time
TASKS = 8  # for each thread of a worker, at most
BLOCK = 64 * 2**20  # bytes of a block in memory


@dataclass(frozen=True)
class Cost:
    """Costs of one pass over rows on equal workers.

    Parameters
    ----------
    rows, dim, groups : int
        Shape of the data, and groups to tell apart.
    itemsize : int
        Bytes of a number.
    workers, threads : int
        Worker processes, and threads of each.
    rate : float
        Bytes that a thread reads, decodes and reduces in a second.
    link : float
        Bytes that a worker's link to the others moves in a second.
    part : float
        Bytes of the rows in a task; by default as many as make eight tasks a thread, as for files.
    """

    rows: int
    dim: int
    groups: int
    itemsize: int = 4
    workers: int = 100
    threads: int = 4
    rate: float = 1e9
    link: float = 1e9
    part: float | None = None

    @property
    def read(self) -> int:
        """Bytes read by all workers together: every row once."""
        return self.rows * self.dim * self.itemsize

    @property
    def moments(self) -> int:
        """Bytes of one summary: mean and sum of squares of each feature in float64, for each group."""
        return 16 * self.groups * self.dim

    @property
    def tasks(self) -> int:
        """Tasks, each of which leaves one summary behind."""
        return TASKS * self.workers * self.threads if self.part is None else ceil(self.read / self.part)

    @property
    def moved(self) -> int:
        """Bytes of summaries that travel at most, over all rounds of the tree."""
        total, level = 0, self.tasks
        while level > 1:
            total += level * self.moments
            level = ceil(level / FAN_IN)
        return total

    @property
    def memory(self) -> int:
        """Bytes that a worker holds: a block and a summary for each thread, and the summaries of one merge."""
        return self.threads * (BLOCK + self.moments) + (FAN_IN + 1) * self.moments

    @property
    def seconds(self) -> float:
        """Reading and reducing, then the rounds of merging, which take as long as their slowest link."""
        rounds = ceil(log(self.tasks, FAN_IN)) if self.tasks > 1 else 0
        merging = self.moved / self.workers / self.link + rounds * FAN_IN * self.moments / self.link
        return self.read / (self.workers * self.threads * self.rate) + merging


def table(rate: float) -> list[list[str]]:
    """Costs of 10⁹ × 1024 vectors of float32 on 100 workers of 4 threads, for few and many groups."""
    return [
        _line(name, Cost(10**9, 1024, groups, rate=rate, part=part))
        for name, part in (("files", None), ("partitions of 128 MB", 2**27))
        for groups in (10, 1_000, 10_000)
    ]


def _line(name: str, cost: Cost) -> list[str]:
    return [
        name,
        f"{cost.groups:,}",
        f"{cost.read / 1e12:.1f} TB",
        f"{cost.read / cost.workers / 1e9:.0f} GB",
        f"{cost.moments / 1e6:,.1f} MB",
        f"{cost.moved / 1e9:,.1f} GB",
        f"{100 * cost.moved / cost.read:,.3g} %",
        f"{cost.memory / 1e9:.2f} GB",
        f"{cost.seconds:.0f} s",
    ]


HEADER = ["", "groups", "read", "by a worker", "a summary", "moved", "of what is read", "memory", "time"]
