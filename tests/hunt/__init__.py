"""Messy data sets, drawn from seeds, compared with a slow and plain reference implementation."""
