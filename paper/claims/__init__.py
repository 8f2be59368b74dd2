"""Every claim of the paper that can be checked: how, the figure, and a verdict that is computed, not typed in."""

from paper.claims.evidence import Evidence, Trials
from paper.claims.ledger import CHECKS, HEADER, judge, rows, run
from paper.claims.model import CONDITIONS, FAILS, HOLDS, UNDECIDED, VERDICTS, Check, Claim

__all__ = [
    "CHECKS",
    "CONDITIONS",
    "FAILS",
    "HEADER",
    "HOLDS",
    "UNDECIDED",
    "VERDICTS",
    "Check",
    "Claim",
    "Evidence",
    "Trials",
    "judge",
    "rows",
    "run",
]
