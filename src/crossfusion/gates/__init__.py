"""Gates: policies with rules on how far groups are fused or separated, checked by `check`."""

from crossfusion.gates.measure import Data, Findings, Measurement
from crossfusion.gates.outcome import RuleOutcome, compare_with_limit
from crossfusion.gates.policy import Policy, make_rule, read_policy
from crossfusion.gates.result import HEADER, LEFT, CheckResult
from crossfusion.gates.rule import Rule
from crossfusion.gates.run import check, check_rows, check_rule, check_summary
