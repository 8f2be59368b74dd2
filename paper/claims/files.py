"""The ledger as Markdown, as a page, and as JSON."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from crossfusion.study import escape, make_document, make_element, write_text
from paper.claims.model import UNDECIDED, VERDICTS, Claim

TITLE = "Cross-Fusion Distance: the paper’s claims, checked"
CLASSES = dict(zip(VERDICTS, ("yes", "partly", "no", "open"), strict=True))


def write_ledger(out: Path, claims: Sequence[Claim], source: Mapping[str, Any]) -> None:
    """Write ``claims.md``, ``claims.html`` and ``claims.json``, each whole or not at all.

    Parameters
    ----------
    out : path
        The folder.
    claims : list of Claim
        The ledger.
    source : mapping
        From what its figures come.
    """
    content = {"source": dict(source), "counts": counts(claims), "claims": [entry.to_dict() for entry in claims]}
    write_text(out / "claims.json", json.dumps(content, indent=1, ensure_ascii=False) + "\n")
    write_text(out / "claims.md", render_markdown(claims, source))
    write_text(out / "claims.html", render_page(claims, source))


def counts(claims: Sequence[Claim]) -> dict[str, int]:
    """Number of claims of each verdict.

    Parameters
    ----------
    claims : list of Claim
        The ledger.

    Returns
    -------
    dict
        In the order of ``VERDICTS``.
    """
    found = Counter(entry.verdict for entry in claims)
    return {verdict: found[verdict] for verdict in VERDICTS}


def _summary(claims: Sequence[Claim]) -> str:
    hold, partly, fail, unknown = counts(claims).values()
    parts = [f"{hold} hold", f"{partly} hold under conditions", f"{fail} do not hold"]
    parts += [f"{unknown} {'is' if unknown == 1 else 'are'} not decided"] if unknown else []
    return f"Of {len(claims)} claims {', '.join(parts[:-1])}, and {parts[-1]}."


def _source(source: Mapping[str, Any]) -> str:
    dims, sizes = (" and ".join(map(str, source[name])) for name in ("dims", "sizes"))
    return (
        f"Figures come from the synthetic study ({dims} features, {sizes} rows a group, {source['trials']} trials), a"
        f" smaller one with moved copies ({source['copies_rows']} rows, {source['copies_trials']} trials), the"
        f" runtime study (up to {source['runtime_rows']:,} rows, {source['runtime_dim']} features), the decomposition"
        f" in the plane, and the paper’s printed tables, by crossfusion {source['version']}. Ranges go from the"
        " smallest to the largest over settings of features and rows. Verdicts follow from the thresholds stated."
    )


def render_markdown(claims: Sequence[Claim], source: Mapping[str, Any]) -> str:
    """The ledger as a Markdown table.

    Parameters
    ----------
    claims : list of Claim
        The ledger.
    source : mapping
        From what its figures come.

    Returns
    -------
    str
        A document.
    """
    lines = [f"# {TITLE}", "", f"{_summary(claims)} {_source(source)}", ""]
    for part in dict.fromkeys(entry.part for entry in claims):
        lines += [f"## {part}", "", "| claim | verdict | figure | how it was checked |", "|---|---|---|---|"]
        for entry in (entry for entry in claims if entry.part == part):
            cells = (f"{entry.claim} ({entry.place})", _verdict(entry), entry.figure, entry.check)
            lines.append(f"| {' | '.join(cells)} |")
        lines.append("")
    return "\n".join(lines)


def _verdict(entry: Claim) -> str:
    terms = f"**{entry.verdict}**" + (f": {entry.conditions}" if entry.conditions else "")
    return terms + (f". Instead: {entry.mend}" if entry.mend else "")


def render_page(claims: Sequence[Claim], source: Mapping[str, Any]) -> str:
    """The ledger as one self-contained page: no network, no scripts.

    Parameters
    ----------
    claims : list of Claim
        The ledger.
    source : mapping
        From what its figures come.

    Returns
    -------
    str
        A whole document.
    """
    style = files("paper.claims").joinpath("claims.css").read_text(encoding="utf-8")
    tiles = "".join(
        make_element(
            "div",
            make_element("dt", escape(verdict)) + make_element("dd", make_element("b", str(number))),
            class_=CLASSES[verdict],
        )
        for verdict, number in counts(claims).items()
        if number or verdict != UNDECIDED
    )
    header = (
        make_element("h1", escape(TITLE))
        + make_element("p", escape(f"{_summary(claims)} {_source(source)}"))
        + make_element("dl", tiles, class_="tiles")
    )
    return make_document(TITLE, [make_element("header", header) + _sections(claims)], style=style)


def _sections(claims: Sequence[Claim]) -> str:
    """Claims under the titles of their parts."""
    return "".join(
        make_element("section", make_element("h2", escape(part)) + "".join(_card(c) for c in claims if c.part == part))
        for part in dict.fromkeys(entry.part for entry in claims)
    )


def _card(entry: Claim) -> str:
    """One claim: what it says, the verdict, the figure, and how it was checked."""
    verdict = make_element("span", escape(entry.verdict), class_="verdict")
    facts = [
        ("figure", entry.figure),
        ("conditions", entry.conditions),
        ("instead", entry.mend),
        ("check", entry.check),
    ]
    terms = "".join(make_element("dt", name) + make_element("dd", escape(text)) for name, text in facts if text)
    title = make_element("h3", escape(entry.claim))
    about = make_element(
        "p", f"{verdict} {escape(entry.place)} · {make_element('code', escape(entry.id))}", class_="about"
    )
    return make_element(
        "article", title + about + make_element("dl", terms), class_=f"claim {CLASSES[entry.verdict]}", id=entry.id
    )
