"""How results are shown: the same lines and tables as plain text and, in a notebook, as HTML."""

import html
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from crossfusion import plots
from crossfusion._base import shorten, text_table

STATISTIC_NAMES = {"welch": "Welch W*d", "pseudo-f": "pseudo-F"}  # of permutation tests, as people read them
DARK_HOSTS = ('[data-jp-theme-light="false"]', ".vscode-dark", '[data-theme="dark"]')  # JupyterLab, VS Code, Sphinx
LIGHT_HOSTS = ('[data-jp-theme-light="true"]', ".vscode-light", '[data-theme="light"]')
STYLE = """
.cf-result {{ color-scheme: light dark; box-sizing: border-box; width: fit-content; max-width: 100%;
  padding: 0.7em 1em; border: 1px solid {rule}; border-radius: 6px; background: {paper}; color: {ink};
  font: 0.875rem/1.45 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
  overflow-wrap: anywhere; }}
{light_hosts} {{ color-scheme: light; }}
{dark_hosts} {{ color-scheme: dark; }}
.cf-result.cf-result p {{ margin: 0.5em 0 0; max-width: 44rem; color: {muted}; }}
.cf-result.cf-result p.cf-title {{ margin: 0; color: {ink}; font-weight: 600; }}
.cf-result.cf-result div {{ overflow-x: auto; margin-top: 0.5em; }}
.cf-result.cf-result table {{ margin: 0; border: 0; border-collapse: collapse; color: {ink}; font-size: inherit;
  font-variant-numeric: tabular-nums; }}
.cf-result.cf-result tr:nth-child(n) {{ background: none; }}
.cf-result.cf-result :is(th, td) {{ padding: 0.3em 0.8em; border: 0; border-top: 1px solid {rule}; text-align: right;
  vertical-align: top; white-space: nowrap; unicode-bidi: isolate; font-weight: 400; }}
.cf-result.cf-result :is(th, td):first-child {{ padding-left: 0; }}
.cf-result.cf-result :is(th, td):last-child {{ padding-right: 0; }}
.cf-result.cf-result :is(.cf-left, .cf-text) {{ max-width: 18em; text-align: left; white-space: normal;
  overflow-wrap: break-word; }}
.cf-result.cf-result .cf-text {{ min-width: 10em; max-width: 44rem; }}
.cf-result.cf-result :is(thead th, tbody th) {{ color: {muted}; }}
.cf-result.cf-result thead th {{ border-top: 0; }}
"""


@dataclass(frozen=True)
class TextTable:
    """Columns of text: those in `left` flush left, and `more` rows that are not shown."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    more: int = 0
    left: Collection[int] = (0,)

    def __str__(self) -> str:
        return text_table(self.header, self.rows, self.more, self.left)

    def to_html(self) -> str:
        """The same cells as an HTML table."""
        body = "".join(self._row("td", row) for row in self.rows)
        table = f"<table><thead>{self._row('th', self.header)}</thead><tbody>{body}</tbody></table>"
        return f'<div tabindex="0">{table}</div>' + (f"<p>... and {self.more:,} more</p>" if self.more else "")

    def _row(self, tag: str, cells: Iterable[str]) -> str:
        classes = (' class="cf-left"' if k in self.left else "" for k, _ in enumerate(self.header))
        texts = (html.escape(shorten(cell)) for cell in cells)
        return _row(f"<{tag}{own}>{text}</{tag}>" for own, text in zip(classes, texts, strict=True))


@dataclass(frozen=True)
class Facts:
    """Names, each with one text beside it, or with some numbers."""

    rows: Sequence[tuple[str, ...]]
    gap: int = 2

    def __str__(self) -> str:
        width = max(len(name) for name, *_ in self.rows) + self.gap
        return "\n".join(f"  {name:<{width}}{'  '.join(texts)}" for name, *texts in self.rows)

    def to_html(self) -> str:
        """The same lines as an HTML table without a header."""
        rows = []
        for name, *texts in self.rows:
            kind = ' class="cf-text"' if len(texts) == 1 else ""
            cells = (f"<td{kind}>{html.escape(text.strip())}</td>" for text in texts)
            rows.append(_row((f'<th class="cf-left">{html.escape(name)}</th>', *cells)))
        return f'<div tabindex="0"><table><tbody>{"".join(rows)}</tbody></table></div>'


Content = str | TextTable | Facts


class DisplayMixin:
    """Text and HTML of an object that lists what it shows: a title, then lines of text and tables."""

    def _contents(self) -> Sequence[Content]:
        """Title, tables and remarks, in the order in which they are read."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return "\n".join(map(str, self._contents()))

    def _repr_html_(self) -> str:
        """What a notebook shows: the same parts, with all text escaped."""
        title, *contents = self._contents()
        shown = (f"<p>{html.escape(part)}</p>" if isinstance(part, str) else part.to_html() for part in contents)
        heading = f'<p class="cf-title">{html.escape(str(title))}</p>'
        return f'<style>{_style()}</style><div class="cf-result">{heading}{"".join(shown)}</div>'


def _row(cells: Iterable[str]) -> str:
    return f"<tr>{''.join(cells)}</tr>"


def _style() -> str:
    """Colors by the scheme of the notebook where that is known, else by that of the reader's system."""
    names = ("rule", "paper", "ink", "muted")
    colors = {name: f"light-dark({plots.LIGHT[name]}, {plots.DARK[name]})" for name in names}
    light, dark = (", ".join(f"{host} .cf-result" for host in hosts) for hosts in (LIGHT_HOSTS, DARK_HOSTS))
    return STYLE.format(light_hosts=light, dark_hosts=dark, **colors)
