"""The server: tools that answer one question at a time, over standard input and output."""

import os
import warnings
from collections.abc import Callable
from functools import wraps
from threading import Lock
from typing import Any

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations
from pydantic import ValidationError

from crossfusion._base import CrossfusionError, CrossfusionWarning
from crossfusion._version import __version__
from crossfusion.mcp.folder import Folder
from crossfusion.mcp.questions import Questions

TOOLS = (
    "list_files",
    "describe",
    "report",
    "groups",
    "matrix",
    "compare",
    "test",
    "separability",
    "hierarchy",
    "attribution",
    "drift",
    "check",
)
INSTRUCTIONS = (
    "Measures how far groups of embeddings (batches, scanners, sites, classes, weeks) are fused or separated, by the"
    " Cross-Fusion Distance (CFD): 0 if all groups have the same mean, larger the farther they are apart. Start with"
    " list_files and describe. Name in units what was sampled independently, such as the patient, and in given what"
    " groups may differ in, such as the tissue. The unbiased CFD is the estimate; quote it with its interval, and"
    " repeat cautions and warnings."
)
READ_ONLY = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)


class Server(MCPServer):
    """A server whose errors are one sentence."""

    async def call_tool(self, name: str, arguments: dict[str, Any], context: Any = None) -> Any:
        """Call a tool."""
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as problem:
            said = str(problem).removeprefix(f"Error executing tool {name}: ")
            if isinstance(problem.__cause__, ValidationError):
                said = "; ".join(
                    f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in problem.__cause__.errors()
                )
            raise ToolError(" ".join(said.split())) from problem


def make_server(root: str | os.PathLike[str]) -> Server:
    """Make a server whose tools read the files of one folder, and write nothing.

    Parameters
    ----------
    root : path
        The folder.

    Returns
    -------
    Server
        The server; its method ``run("stdio")`` answers until the input ends.
    """
    folder = Folder(root)
    asked = Asked(folder)
    questions = Questions(folder, asked.list_warnings)
    server = Server("crossfusion", version=__version__, instructions=INSTRUCTIONS, log_level="ERROR")
    for name in TOOLS:
        server.add_tool(asked.guard(getattr(questions, name)), name=name, annotations=READ_ONLY)
    return server


class Asked:
    """One question at a time, with the warnings that it leads to."""

    def __init__(self, folder: Folder) -> None:
        self._folder, self._lock = folder, Lock()
        self._caught: list[warnings.WarningMessage] = []

    def list_warnings(self) -> list[str]:
        """The warnings of the question that is being answered."""
        said = (str(each.message) for each in self._caught if issubclass(each.category, CrossfusionWarning))
        return list(dict.fromkeys(said))

    def guard(self, question: Callable[..., Any]) -> Callable[..., Any]:
        """The same question, with errors that a client may read."""

        @wraps(question)
        def ask(*values: Any, **named: Any) -> Any:
            with self._lock, warnings.catch_warnings(record=True) as caught:
                self._caught = caught
                warnings.simplefilter("always", CrossfusionWarning)
                try:
                    return question(*values, **named)
                except CrossfusionError as problem:
                    raise ToolError(self._folder.shorten(str(problem))) from problem

        return ask
