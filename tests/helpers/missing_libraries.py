"""Code that runs as if a library were not installed."""


def without(name: str) -> str:
    """Code after which a library cannot be imported."""
    return f"""
import sys
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "{name}":
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Hidden())
"""
