"""What a file can be called in a manifest: by path or by name, with the endings of slides and data or without."""

from collections.abc import Iterable

from crossfusion.io.sources.paths import COMPRESSED_ENDINGS

SLIDE_ENDINGS = (
    *(".svs", ".tif", ".tiff", ".ndpi", ".mrxs", ".scn", ".bif", ".vms", ".vmu", ".dcm", ".svslide", ".qptiff"),
    *(".czi", ".isyntax", ".btf", ".ome", ".png", ".jpg", ".jpeg"),
)


def list_stems(name: str) -> list[str]:
    """A name, and the same without its known endings, one after the other: `s.svs.h5`, `s.svs`, `s`.

    Other endings stay, since `patient.1` and `patient.2` are two patients.
    """
    known = _list_endings()
    stems = [name]
    while True:
        stem, dot, ending = stems[-1].rpartition(".")
        if not stem.strip("./") or stem.endswith("/") or f"{dot}{ending.lower()}" not in known:
            return stems
        stems.append(stem)


def list_file_names(file: str) -> list[str]:
    """All that a file can be called: ends of its path, whole or without known endings, longer stems first."""
    steps = split_path(file)
    return ["/".join([*steps[start:-1], stem]) for stem in list_stems(steps[-1]) for start in range(len(steps))]


def find_base_name(file: str) -> str:
    """Name of a file without its folders and known endings."""
    return list_stems(split_path(file)[-1])[-1]


def split_path(file: str) -> list[str]:
    """Folders and name of a path of any system."""
    return file.replace("\\", "/").split("/")


def index_names(keys: Iterable[str]) -> dict[str, list[int]]:
    """Positions of the keys that have a name, with their endings or without."""
    found: dict[str, list[int]] = {}
    for position, key in enumerate(keys):
        for name in list_stems("/".join(split_path(key))):
            found.setdefault(name, []).append(position)
    return found


def index_base_names(keys: Iterable[str]) -> dict[str, int]:
    """Position of the key of each base name; empty where two keys share one, since base names say too little then."""
    names = [find_base_name(key) for key in keys]
    return {name: position for position, name in enumerate(names)} if len({*names}) == len(names) else {}


def _list_endings() -> set[str]:
    from crossfusion.io.sources import READERS  # which imports this module's users

    return {*SLIDE_ENDINGS, *COMPRESSED_ENDINGS, *READERS}
