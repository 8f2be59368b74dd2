"""What every released version wrote is read, and answers as it did then."""

import json
import math

import pytest

import crossfusion as cf
from tests.helpers import golden_files as kept

FOLDERS = sorted(folder for folder in kept.FOLDER.iterdir() if folder.is_dir())


def assert_same(found, expected, where=""):
    """Equal, numbers to 1e-12 of themselves; what is there must be there still, more may have come."""
    if isinstance(expected, dict):
        assert expected.keys() <= found.keys(), where
        for name, value in expected.items():
            assert_same(found[name], value, f"{where}/{name}")
    elif isinstance(expected, list):
        assert len(found) == len(expected), where
        for k, value in enumerate(expected):
            assert_same(found[k], value, f"{where}/{k}")
    elif expected is None and "/unbiased" in where:
        return  # a group with one row left it undefined in 0.1; now the group borrows the pooled variance
    elif found is None and "/hierarchy/levels/" in where:
        assert not expected, where  # a level that compares nothing was at distance 0 in 0.1
    elif expected is None and where.endswith("/unbiased"):
        return  # a group with one row borrows a variance since 0.2
    elif isinstance(expected, float) and not isinstance(found, str | None):
        assert math.isclose(found, expected, rel_tol=1e-12, abs_tol=1e-12), f"{where}: {found}, was {expected}"
    else:
        assert found == expected, where


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_what_a_version_wrote_is_read_and_answers_as_it_did(folder):
    assert_same(kept.read(folder), json.loads((folder / kept.ANSWERS).read_text("utf-8")))


def test_this_release_is_kept():
    released = {folder.name for folder in FOLDERS}
    assert {"format1", "format2", "0.1.0"} <= released
    assert cf.__version__ in released or "dev" in cf.__version__, "make golden"


def test_a_kept_release_is_not_written_again():
    before = (kept.FOLDER / "0.1.0" / kept.ANSWERS).read_bytes()
    with pytest.raises(SystemExit, match="is there already"):
        kept.add(kept.FOLDER / "0.1.0")
    assert (kept.FOLDER / "0.1.0" / kept.ANSWERS).read_bytes() == before
