"""A tile: where pixels are, what is known of them, and the pixels when they are asked for."""

import os
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from crossfusion._base import FileError
from crossfusion.io import show_path
from crossfusion.pathology.slide_files import Box, SlideFile, explain_read_errors, open_slide_file

MAX_OPEN_FILES = 2  # files that a thread keeps open: tiles of one follow each other, or those of a pair alternate


@dataclass(frozen=True)
class Tile:
    """A square of a slide, or a whole image, to encode, with its factors.

    Parameters
    ----------
    file : str
        Path of the image or slide.
    key : str
        Unique name of the tile within a data set, used in tables and to resume work.
    factors : mapping of str to str
        Factors such as scanner, slide and label; all tiles of a data set have the same factors.
    box : tuple of int, optional
        Left, top, width and height in pixels of the full resolution; None is the whole image.
    size : tuple of int, optional
        Width and height in pixels after scaling; None keeps the original size.

    Examples
    --------
    >>> import numpy as np, tempfile
    >>> from PIL import Image
    >>> from crossfusion.pathology import Tile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = f"{folder.name}/a.png"
    >>> Image.fromarray(np.full((40, 60, 3), 200, np.uint8)).save(path)
    >>> tile = Tile(path, "a", {"scanner": "S1"}, box=(10, 0, 20, 20), size=(8, 8))
    >>> tile.read().shape
    (8, 8, 3)
    >>> folder.cleanup()
    """

    file: str
    key: str
    factors: Mapping[str, str] = field(hash=False)
    box: Box | None = None
    size: tuple[int, int] | None = None

    def read(self) -> NDArray[np.uint8]:
        """Read the pixels; a box that reaches beyond the edge is filled by mirroring.

        Returns
        -------
        pixels : array
            Rows × columns × 3, red, green and blue.
        """
        with explain_read_errors(self.file):
            if self.box is None:
                picture = open_slide_file(self.file)  # looked at once, so not kept
                try:
                    return picture.read_region((0, 0, *picture.size), self.size or picture.size)
                finally:
                    picture.close()
            return _read_region(_open_cached(self.file), self.box, self.size or self.box[2:])


class _OpenFiles(threading.local):
    """Files that this thread has open, the one used last at the end."""

    def __init__(self) -> None:
        self.files: OrderedDict[tuple[object, ...], SlideFile] = OrderedDict()


_open_files = _OpenFiles()


def _open_cached(path: str) -> SlideFile:
    """A file of this thread: libraries of slides share what they read among threads, or are not made for them."""
    found = os.stat(path)
    name = (os.getpid(), path, found.st_mtime_ns, found.st_size)  # a process that was forked opens its own
    files = _open_files.files
    if name not in files:
        while len(files) >= MAX_OPEN_FILES:
            files.popitem(last=False)[1].close()
        files[name] = open_slide_file(path)
    files.move_to_end(name)
    return files[name]


def _read_region(picture: SlideFile, box: Box, size: tuple[int, int]) -> NDArray[np.uint8]:
    """A region of a picture at a size, mirrored where it reaches over the edge."""
    spans = [_clip_span(*span) for span in zip(box[:2], box[2:], picture.size, size, strict=True)]
    if None in spans:
        raise FileError(
            show_path(picture.path),
            f"has {picture.size[0]:,} × {picture.size[1]:,} pixels, so the box {box} lies outside of it",
            "correct the box, or the file",
        )
    across, down = (span for span in spans if span is not None)
    part = picture.read_region((across[0], down[0], across[1], down[1]), (across[2], down[2]))
    before = across[3], down[3]
    after = size[0] - before[0] - across[2], size[1] - before[1] - down[2]
    if not any((*before, *after)):
        return part
    return np.pad(part, ((before[1], after[1]), (before[0], after[0]), (0, 0)), mode="symmetric")


def _clip_span(start: int, length: int, limit: int, size: int) -> tuple[int, int, int, int] | None:
    """What of a stretch lies within the picture: its start and length, its length scaled, and what lacks before."""
    first, last = max(start, 0), min(start + length, limit)
    if first >= last:
        return None
    before = min(round((first - start) * size / length), size - 1)
    after = min(round((start + length - last) * size / length), size - 1 - before)
    return first, last - first, size - before - after, before
