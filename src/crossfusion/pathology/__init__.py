"""From slides to embeddings: reading tiles, normalising their stain, encoding them."""
