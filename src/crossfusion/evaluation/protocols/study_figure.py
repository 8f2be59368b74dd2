"""Distances against degradation, as a file."""

from pathlib import Path

from crossfusion.evaluation.protocols.study_result import Study
from crossfusion.plots import saving, style


def save_study_figure(study: Study, path: Path) -> None:
    """Write the figure, whole or not at all; with very many panels, fewer dots per inch."""
    saving.check_ending(path)
    saving.write_figure(study.plot(), path, 150 if len(study.distances) <= style.MANY_PANELS else 90)
