"""A server of the Model Context Protocol: the questions of crossfusion as tools, on the files of one folder."""

from crossfusion._base import optional

optional.load("mcp", "mcp", "mcp", "crossfusion.mcp")

from crossfusion.mcp.server import make_server  # noqa: E402 - imports mcp

__all__ = ["make_server"]
