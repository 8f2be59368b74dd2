"""Speed, always as a ratio of two sides that alternate in one run."""
