"""Numbers that the first screen shows large: unadjusted CFD, adjusted CFD, and how recognizable the groups are."""

from typing import Any

from crossfusion.fusion import Fusion
from crossfusion.report.cautions import choose_estimate
from crossfusion.report.headline import describe_interval, format_share
from crossfusion.report.html.markup import format_number, format_percent
from crossfusion.report.name_text import format_factors, format_plural, format_stratum
from crossfusion.report.verdict import Findings


def make_cards(found: Findings) -> list[dict[str, Any]]:
    """Distances: name, value, interval, and what each is about."""
    asked = found.question
    given = format_factors(asked.given)
    cards = [
        _make_card(
            found,
            "Unadjusted CFD" if asked.given else f"CFD between {format_plural(asked.between)}",
            found.unadjusted,
            "",
        )
    ]
    if asked.given:
        within = f" within {format_stratum(asked.given)}"
        cards.append(_make_card(found, f"CFD adjusted for {given}", found.main, within))
    return cards


def _make_card(found: Findings, name: str, fusion: Fusion, within: str) -> dict[str, Any]:
    estimate = choose_estimate(fusion)
    said = "nothing to compare"
    if estimate is not None:
        said = f"{format_plural(found.question.between)} explain {format_share(estimate)} of the variance{within}"
    overlap = "" if fusion.overlap == 1 else f" (overlap {format_percent(fusion.overlap)})"
    return {
        "name": name,
        "value": format_number(estimate),
        "interval": describe_interval(fusion),
        "text": f"{said}{overlap}",
    }
