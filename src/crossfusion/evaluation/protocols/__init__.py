"""Protocols of evaluation: whether distances are small where they should be, and foresee what models lose."""
