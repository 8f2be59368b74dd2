"""All commands, in the order and under the headings of the first page; each is imported when it is called."""

import sys
from collections import UserDict
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from typing import Any

import click
from click.shell_completion import CompletionItem

from crossfusion._version import __version__
from crossfusion.cli import ARGUMENTS, defaults, end_output

SECTIONS: dict[str, tuple[tuple[str, str, str], ...]] = {  # command, its module, and the first line of its help
    "Compare groups": (
        ("compare", "compare", "Compare the rows of two files, folders or queries."),
        ("matrix", "matrix", "Compare all pairs of groups."),
        ("hierarchy", "hierarchy", "Decompose the distance between nested groups by level."),
        ("attribution", "attribution", "Attribute the variance between groups to features or units."),
        ("test", "test", "Test whether groups differ by more than chance."),
        ("separability", "separability", "Measure how well a classifier recognizes groups."),
        ("mixing", "mixing", "Measure how groups mix in the regions of a codebook."),
        ("drift", "drift", "Compare periods with a reference; exit with 1 on an alarm."),
        ("projection", "projection", "Project groups onto the plane that separates them most."),
        ("check", "check", "Check data against the rules of a policy."),
        ("report", "report", "Write an HTML report on how far groups are separated."),
    ),
    "Summarize rows": (
        ("summarize", "summarize", "Reduce rows to the moments of their groups, in one pass."),
        ("merge", "summarize", "Add up summaries of different rows or sites."),
        ("lens", "lens", "Fit a lens, a map of rows, and show lens files."),
    ),
    "Compare corrections and embeddings": (
        ("corrections", "corrections", "Compare corrections of the same rows by batch and biology."),
        ("integration", "integration", "Compare embeddings of the same cells by batch and biology."),
    ),
    "Evaluate distances": (
        ("rdr", "protocols", "Measure the relative distance ratio (RDR) of distances."),
        ("cddr", "protocols", "Measure the cross-domain degradation rate (CDDR) of a model."),
        ("degradation", "degradation", "Study whether distances predict how much a model degrades."),
    ),
    "Encode images": (
        ("tiles", "tiles", "Count the tiles that would be encoded, by factor."),
        ("embed", "embed", "Encode images; write one row per tile, with its factors."),
        ("histopathology", "histopathology", "Evaluate distances and stain normalizers on slides."),
    ),
    "Get started": (
        ("demo", "start", "Simulate a data set with a known answer and measure it."),
        ("mcp", "mcp", "Answer questions about the files in a folder over MCP."),
        ("completion", "start", "Print a shell completion script."),
    ),
}
HIDDEN = {"bench": "moved", "methods": "corrections", "reproduce": "moved"}  # names of 0.1
RENAMED = {  # options by the names of 0.1, which are still accepted
    "hierarchy": {"--levels": "--factors"},
    "report": {"--levels": "--factors"},
    "test": {"--paired": "--pairs"},
    "compare": {"--test": "--permutations"},
    "matrix": {"--test": "--permutations"},
}
NO_CONFIG = "crossfusion.no_config"  # where a context keeps whether defaults are ignored
LISTED = {name: line for section in SECTIONS.values() for name, _, line in section}
MODULES = {name: module for section in SECTIONS.values() for name, module, _ in section} | HIDDEN


class LazyCommands(UserDict[str, Any]):
    """Commands by name; each is stored as the name of its module, which is imported when the command is looked up."""

    def __getitem__(self, name: str) -> click.Command:
        command: click.Command = getattr(import_module(f"crossfusion.cli.{self.data[name]}"), name)
        return command


def _rename_options(words: list[str]) -> list[str]:
    """Replace options by their present names, and say so."""
    earlier = RENAMED.get(next((word for word in words if not word.startswith("-")), ""), {})
    end = words.index("--") if "--" in words else len(words)
    found = []
    for word in words[:end]:
        name, equals, value = word.partition("=")
        if name in earlier:
            click.echo(f"crossfusion: {name} is now called {earlier[name]}", err=True)
            name = earlier[name]
        found.append(f"{name}{equals}{value}")
    return found + words[end:]


@contextmanager
def _end_quietly() -> Iterator[None]:
    """Leave it to this program what is said of an interruption, and of a reader that is gone."""
    try:
        yield
    except KeyboardInterrupt as problem:
        if sys.stderr.isatty():  # where the line begins with ^C
            raise
        raise click.Abort from problem
    except BrokenPipeError as problem:  # for which click would exit with 1, the code of an alarm
        end_output()
        raise click.exceptions.Exit(0) from problem


class Commands(click.Group):
    """All commands; in a pipe, an interruption is one line, without the empty one of click, and its end is no error."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments, which a page names as the command that made it."""
        args = _rename_options(args)
        ctx.meta[ARGUMENTS] = list(args)
        return super().parse_args(ctx, args)

    def make_context(self, *arguments: Any, **options: Any) -> click.Context:
        """Read what was typed."""
        with _end_quietly():
            return super().make_context(*arguments, **options)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, with its defaults from the file of defaults."""
        name, command, rest = super().resolve_command(ctx, args)
        if name is None or command is None or ctx.resilient_parsing or ctx.meta.get(NO_CONFIG):
            return name, command, rest
        found = defaults.read_defaults()
        defaults.check_tables(found, LISTED)
        others = partial(map, self.commands.__getitem__, LISTED)
        return name, defaults.apply_defaults(ctx, name, command, found, RENAMED.get(name, {}), others), rest

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command."""
        with _end_quietly():
            return super().invoke(ctx)

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands under headings, in the order in which they are needed."""
        width = max(map(len, LISTED))
        room = formatter.width - 6 - width
        for title, commands in SECTIONS.items():
            with formatter.section(title):
                lines = {name: click.Command(name, help=line).get_short_help_str(room) for name, _, line in commands}
                formatter.write_dl([(f"{name:<{width}}", line) for name, line in lines.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete the name of a command or an option, without importing any command."""
        names = [CompletionItem(name, help=line) for name, line in LISTED.items() if name.startswith(incomplete)]
        return names + click.Command.shell_complete(self, ctx, incomplete)


def _show_version(ctx: click.Context, _option: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        from crossfusion.moments import kernel

        click.echo(f"crossfusion {__version__}, kernel {kernel.describe_kernel()}")
        ctx.exit()


def _skip_defaults(ctx: click.Context, _option: click.Parameter, wanted: bool) -> None:
    ctx.meta[NO_CONFIG] = wanted


@click.group(
    cls=Commands,
    commands=LazyCommands(MODULES),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Show the version and the kernel in use, and exit.",
)
@click.option(
    "--no-config",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_skip_defaults,
    help=f"Ignore the defaults in {defaults.FILE}.",
)
def cli() -> None:
    """Measure how far groups of embeddings are fused or separated.

    \b
    Examples:
      crossfusion demo -o demo
      crossfusion compare A.npy B.npy
      crossfusion matrix embeddings.parquet --between scanner --given label
      crossfusion report embeddings.parquet --between scanner --given label --units patient

    Each command has examples of its own: crossfusion COMMAND --help.

    Defaults of options are read from crossfusion.toml in the working folder, such as 'units = "patient"' for all
    commands and 'level = 0.9' under [matrix] for one. Options that are typed take precedence.
    """
