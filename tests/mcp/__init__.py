"""Tests of crossfusion.mcp."""
