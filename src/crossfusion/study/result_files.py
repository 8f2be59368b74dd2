"""Files of an evaluation: tables as Markdown, numbers as JSON, the figure; each whole or not at all."""

import json

from crossfusion._base import make_folder, write_text
from crossfusion.evaluation import save_study_figure
from crossfusion.study import tables
from crossfusion.study.dataset import Evaluation


def write_files(found: Evaluation) -> None:
    """Write ``rdr.md``, ``appendix.md``, ``results.json``, and where there is a study its tables and figure."""
    folder = make_folder(found.folder)
    texts = {"rdr": tables.ratio_tables(found), "appendix": tables.within_tables(found)}
    if found.study is not None:
        texts |= {
            "cddr": [tables.degradation_table(found)],
            "study": [tables.study_table(found)],
            "correlations": tables.correlation_tables(found),
        }
        for ending in ("png", "svg"):
            save_study_figure(found.study, folder / f"scatter.{ending}")
    for name, content in texts.items():
        write_text(folder / f"{name}.md", tables.render_markdown(content))
    numbers = json.dumps(found.to_dict(), indent=1, ensure_ascii=False, allow_nan=False)
    write_text(folder / "results.json", numbers + "\n")
