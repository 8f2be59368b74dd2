"""The paper's experiments, on public names only."""
