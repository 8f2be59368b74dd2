"""Distances against degradation, as a file."""

from pathlib import Path

from crossfusion import pictures
from crossfusion.plots.panels import MANY
from crossfusion.protocols.outcomes import Study


def save(study: Study, path: Path) -> None:
    """Write the figure, whole or not at all; with very many panels, fewer dots an inch.

    Parameters
    ----------
    study : Study
        What ``degradation_study`` found.
    path : path
        Ends in .png, .svg or .pdf.
    """
    pictures.check_ending(path)
    pictures.write(study.plot(), path, 150 if len(study.distances) <= MANY else 90)
