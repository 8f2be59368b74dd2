"""The kinds of trouble, and how much of the time each gets."""

from dataclasses import dataclass
from importlib import import_module
from typing import Any


@dataclass(frozen=True)
class Part:
    """A module of this package: `prepare(folder)` once, then `case(folder, own, draw, number)`, which tells its end.

    `own` is an empty folder; what is wrong raises `Broken`.
    """

    share: float
    about: str
    module: str

    def load(self) -> Any:
        """The module."""
        return import_module(f"tests.stress.{self.module}")


PARTS = {  # those whose cases take long come first, as they may overrun
    "workers": Part(3, "workers of Dask and Spark that are killed in the middle of their work", "workers"),
    "studies": Part(3, "a study of the paper that is killed, and goes on", "studies"),
    "surroundings": Part(5, "locales, encodings, terminals, pipes, times and clocks", "surroundings"),
    "readers": Part(5, "broken files of every format, from tests/fuzz", "readers"),
    "interrupts": Part(5, "processes that are killed or interrupted at any moment", "interrupts"),
    "writers": Part(4, "many writers to one file, some killed, some with the same rows", "writers"),
    "memory": Part(4, "processes that may not have much memory", "memory"),
    "disk": Part(3, "disks that are full, files that may not grow", "disk"),
    "denied": Part(2, "files and folders that may not be read or written", "denied"),
    "commands": Part(6, "every command with words, files and values that are wrong", "commands"),
    "reports": Part(3, "pages of hostile names, and of broken summaries", "reports"),
    "arrays": Part(3, "Python calls with arrays and options that are odd", "arrays"),
    "summaries": Part(3, "summaries cut at every byte, and with flipped bits", "summaries"),
}
