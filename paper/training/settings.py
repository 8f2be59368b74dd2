"""Every choice of the study, the same for all methods."""

from dataclasses import dataclass, replace

from paper.checks import check_seed, check_whole

NONE = "none"
METHODS = {
    NONE: "no regulariser",
    "cfd": "CFD",
    "cfd_given_label": "CFD given label",
    "coral": "CORAL",
    "mmd_linear": "linear MMD",
    "mmd_rbf": "RBF MMD",
    "dann": "DANN",
}
OURS = ("cfd", "cfd_given_label")
LEVEL = 0.95


@dataclass(frozen=True)
class Settings:
    """Settings of the study.

    Parameters
    ----------
    seed : int
        The first seed; the others follow it. A seed decides splits, initial weights, batches and noise.
    seeds : int
        How many.
    strengths : tuple of float
        The grid of every regulariser. At a strength of 1 a penalty counts as one nat of the loss would, at the network
        as it is when the penalty sets in.
    warm_up : int
        Steps without a penalty that all methods share.
    steps : int
        Steps after them, during which the penalty grows.
    batch : int
        Rows of each domain in a step.
    width : int
        Features that penalties act on.
    rate : float
        Learning rate of Adam.
    confidence : float
        Probability from which on a prediction is taken for the label of a row without one.
    tolerance : float
        Accuracy on the sources that a strength may cost to be chosen.
    rounds : int
        Turns that the steps of all methods take when they are timed.
    whole : bool
        All pairs of domains; else one of each data set.

    Examples
    --------
    >>> from paper.training.settings import Settings
    >>> Settings().seeds
    5
    >>> Settings.quick().seeds
    2
    """

    seed: int = 0
    seeds: int = 5
    strengths: tuple[float, ...] = (0.1, 0.3, 1.0, 3.0)
    warm_up: int = 100
    steps: int = 250
    batch: int = 64
    width: int = 64
    rate: float = 1e-3
    confidence: float = 0.8
    tolerance: float = 0.01
    rounds: int = 200
    whole: bool = True

    def __post_init__(self) -> None:
        check_seed(self.seed)
        check_whole(self.seeds, "seeds", 2)

    @classmethod
    def quick(cls, seed: int = 0) -> "Settings":
        """A first look: two seeds, two strengths, few steps.

        Parameters
        ----------
        seed : int
            The first seed.

        Returns
        -------
        Settings
            Of which the results say nothing about the methods.
        """
        return replace(cls(seed=seed), seeds=2, strengths=(0.3, 1.0), warm_up=30, steps=40, rounds=10, whole=False)
