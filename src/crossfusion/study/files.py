"""Files of studies, each written whole or not at all."""

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from crossfusion._base import files

if TYPE_CHECKING:
    import pyarrow as pa


def make_folder(folder: Path) -> Path:
    """Make a folder if it does not exist.

    Parameters
    ----------
    folder : path
        The folder.

    Returns
    -------
    Path
        The same.
    """
    return files.make_folder(folder)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a text file.

    Parameters
    ----------
    path : path
        The file.
    text : str
        Its content, in UTF-8.
    """
    files.write_text(path, text)


def write_table(path: Path, table: "pa.Table") -> None:
    """Write a table as Parquet with checksums.

    Parameters
    ----------
    path : path
        The file.
    table : pyarrow.Table
        Its content.
    """
    import pyarrow.parquet as pq

    files.write_whole(path, partial(pq.write_table, table, write_page_checksum=True))
