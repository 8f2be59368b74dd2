"""Self-contained pages: their frame and style, and HTML from text."""
