"""Files of an evaluation: tables as Markdown, numbers as JSON, the figure; each whole or not at all."""

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from crossfusion._base import make_folder, write_text, write_whole
from crossfusion.evaluation import save_study_figure
from crossfusion.study import tables
from crossfusion.study.dataset import Evaluation

if TYPE_CHECKING:
    import pyarrow as pa


def write_files(found: Evaluation) -> None:
    """Write ``rdr.md``, ``appendix.md``, ``results.json``, and where there is a study its tables and figure."""
    folder = make_folder(found.folder)
    texts = {"rdr": tables.make_ratio_tables(found), "appendix": tables.make_within_tables(found)}
    if found.study is not None:
        texts |= {
            "cddr": [tables.make_degradation_table(found)],
            "study": [tables.make_study_table(found)],
            "correlations": tables.make_correlation_tables(found),
        }
        for ending in ("png", "svg"):
            save_study_figure(found.study, folder / f"scatter.{ending}")
    for name, content in texts.items():
        write_text(folder / f"{name}.md", tables.render_markdown(content))
    numbers = json.dumps(found.to_dict(), indent=1, ensure_ascii=False, allow_nan=False)
    write_text(folder / "results.json", numbers + "\n")


def write_table(path: Path, table: "pa.Table") -> None:
    """Write a table as Parquet with checksums."""
    import pyarrow.parquet as pq

    write_whole(path, partial(pq.write_table, table, write_page_checksum=True))
