"""The command that serves a folder to programs that speak the Model Context Protocol."""

import click

from crossfusion.cli import options


@click.command()
@click.argument("folder", type=options.PATH, metavar="FOLDER")
def mcp(folder: str) -> None:
    """Answer questions about the files in a folder over MCP.

    The server speaks the Model Context Protocol over standard input and output. Its tools read only files in FOLDER,
    and write nothing.

    \b
    Examples:
      crossfusion mcp embeddings/
    """
    from crossfusion.mcp import make_server

    make_server(folder).run("stdio")
