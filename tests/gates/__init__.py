"""Tests of crossfusion.gates."""
