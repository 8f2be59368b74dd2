"""Other distances, corrections, and the protocols that judge them."""

from crossfusion.evaluation.baselines import Decomposition, distance, distances, wasserstein_decomposition
from crossfusion.evaluation.baselines.pair_distances import squared_distances
from crossfusion.evaluation.baselines.sinkhorn import solve
from crossfusion.evaluation.baselines.transport import transport_plan
from crossfusion.evaluation.correctors import correct, corrections
from crossfusion.evaluation.protocols.association import associations
from crossfusion.evaluation.protocols.degradation import cddr, check_options
from crossfusion.evaluation.protocols.degradation_result import SCORES, Cddr
from crossfusion.evaluation.protocols.measures import WITHIN_LABELS, as_measures
from crossfusion.evaluation.protocols.ratio_result import Ratio, Rdr, pair_text
from crossfusion.evaluation.protocols.relative_ratio import rdr
from crossfusion.evaluation.protocols.study import CORRECTIONS, DISTANCES, degradation_study
from crossfusion.evaluation.protocols.study_figure import save_study_figure
from crossfusion.evaluation.protocols.study_result import Association, Outcome, Study

__all__ = [
    "CORRECTIONS",
    "DISTANCES",
    "SCORES",
    "WITHIN_LABELS",
    "Association",
    "Cddr",
    "Decomposition",
    "Outcome",
    "Ratio",
    "Rdr",
    "Study",
    "as_measures",
    "associations",
    "cddr",
    "check_options",
    "correct",
    "corrections",
    "degradation_study",
    "distance",
    "distances",
    "pair_text",
    "rdr",
    "save_study_figure",
    "solve",
    "squared_distances",
    "transport_plan",
    "wasserstein_decomposition",
]
