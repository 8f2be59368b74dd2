"""Tables of an evaluation, each with the paper's numbers where it has some for this data set."""

from collections.abc import Sequence

from crossfusion._base import label_text, level_text, limits_text, number_text
from crossfusion.evaluation import SCORE_NAMES
from crossfusion.report import PageTable
from crossfusion.study import published_tables
from crossfusion.study.dataset import Evaluation

MAX_SIDES_ABREAST = 6  # sides of pairs beside one another; more stand below one another
SCALES = {
    "ratio": ("as it stands", "ratios of the distances as they stand"),
    "ratio_root": ("as root", "all distances brought to the first power (CFD and squared MMD by their roots)"),
    "ratio_squared": ("as square", "all distances brought to the second power"),
}


def make_ratio_tables(found: Evaluation) -> list[PageTable]:
    """Relative distance ratios of each version, as they stand, as roots and as squares."""
    tables = []
    for version, ratios in found.rdr.items():
        for what, (short, scale) in SCALES.items():
            cells = (
                published_tables.format_ratios
                if len(ratios.sides) <= MAX_SIDES_ABREAST
                else published_tables.format_ratios_by_side
            )
            spread = f", mean ± sd of {ratios.repeats} random halves" if what == "ratio" else ""
            tables.append(
                PageTable(f"RDR, {version}, {short}", f"{scale}{spread}", *cells(ratios, what, printed=found.printed))
            )
    return tables


def make_within_tables(found: Evaluation) -> list[PageTable]:
    """Distances of halves of one domain and of two domains, of each version."""
    return [
        PageTable(
            f"Distances within and across domains, {version}",
            "mean ± sd",
            *published_tables.format_distances(ratios, printed=found.printed),
        )
        for version, ratios in found.rdr.items()
    ]


def make_degradation_table(found: Evaluation) -> PageTable:
    """Scores and degradation of every directed pair after every correction."""
    study = found.study
    assert study is not None
    interval = f"{level_text(study.level)} interval"
    header = ["correction", "train", "test", "within", "cross", "CDDR", interval]
    rows = [
        [
            outcome.correction,
            label_text(outcome.train),
            label_text(outcome.test),
            *map(number_text, (outcome.within, outcome.cross, outcome.cddr)),
            limits_text(outcome.lower, outcome.upper),
        ]
        for outcome in study.outcomes
    ]
    return PageTable(
        "Degradation of a model", f"{SCORE_NAMES[study.metric]} within a domain and on another", header, rows
    )


def make_study_table(found: Evaluation) -> PageTable:
    """As the paper's table 3: distances, scores and degradation, averaged over pairs, a row a correction."""
    study = found.study
    assert study is not None
    pairs = len({(outcome.train, outcome.test) for outcome in study.outcomes})
    caption = f"averages over {pairs} directed pairs, {study.rows:,} rows a domain in every distance"
    return PageTable("Distances and degradation", caption, *published_tables.format_study(study, printed=found.printed))


def make_correlation_tables(found: Evaluation) -> list[PageTable]:
    """Correlations with degradation: over pairs of each version, over versions, over both."""
    study = found.study
    assert study is not None
    asked: list[tuple[str, str | None, str]] = [("pairs", name, f"over pairs, {name}") for name in study.corrections]
    if len(study.corrections) > 1:
        asked[1:1] = [
            ("all", None, "over pairs and corrections"),
            ("corrections", None, "over corrections, averaged over pairs"),
        ]
    if len(study.domains) < 3:  # two points, between which everything correlates
        asked = [entry for entry in asked if entry[0] != "pairs"]
    return [
        PageTable(f"Correlation with CDDR {text}", study.caution, *study.correlations(over, name))
        for over, name, text in asked
    ]


def make_main_tables(found: Evaluation) -> list[PageTable]:
    """What a page shows at once."""
    first = make_ratio_tables(found)[: len(SCALES)]
    if found.study is None:
        return first
    return [make_study_table(found), *make_correlation_tables(found)[:2], *first]


def make_other_tables(found: Evaluation) -> list[PageTable]:
    """What a page shows when it is asked for."""
    rest = [*make_ratio_tables(found)[len(SCALES) :], *make_within_tables(found)]
    if found.study is None:
        return rest
    return [*make_correlation_tables(found)[2:], make_degradation_table(found), *rest]


def render_markdown(tables: Sequence[PageTable], level: int = 2) -> str:
    """Tables as Markdown, under headings of a level."""
    return "\n".join(
        f"{'#' * level} {table.title}\n\n"
        + (f"{table.caption[:1].upper()}{table.caption[1:]}.\n\n" if table.caption else "")
        + published_tables.format_markdown_table(table.header, table.rows)
        for table in tables
    )
