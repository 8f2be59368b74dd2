"""Other distances, corrections, and the protocols that judge them."""

from crossfusion.evaluation.baselines import Decomposition, distance, distances, wasserstein_decomposition
from crossfusion.evaluation.baselines.pair_distances import compute_squared_distances
from crossfusion.evaluation.baselines.sinkhorn import solve_sinkhorn
from crossfusion.evaluation.baselines.transport import solve_transport
from crossfusion.evaluation.correctors import correct, corrections, respell_correction
from crossfusion.evaluation.protocols.association import correlate_distances
from crossfusion.evaluation.protocols.degradation import cddr, check_cddr_options
from crossfusion.evaluation.protocols.degradation_result import SCORE_NAMES, Cddr
from crossfusion.evaluation.protocols.measures import WITHIN_LABELS, as_measures
from crossfusion.evaluation.protocols.ratio_result import Ratio, Rdr, pair_text
from crossfusion.evaluation.protocols.relative_ratio import rdr
from crossfusion.evaluation.protocols.study import DEFAULT_CORRECTIONS, DEFAULT_DISTANCES, degradation_study
from crossfusion.evaluation.protocols.study_figure import save_study_figure
from crossfusion.evaluation.protocols.study_result import Association, Outcome, Study
