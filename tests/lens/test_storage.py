"""Files of lenses: what is written is read back, and anything else is refused in one sentence."""

import json
import struct
import tracemalloc
from contextlib import suppress

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import load_file, save_file

import crossfusion as cf
from crossfusion.lens.storage import METADATA_KEY
from tests.lens.test_lenses import LENSES, X

FRAME = pd.DataFrame(X, columns=list("abcdef"))
NAMED = cf.lens.standardize(FRAME) | cf.lens.unit()


@pytest.fixture
def written(tmp_path):
    path = tmp_path / "lens.safetensors"
    NAMED.write(path)
    return path


@pytest.mark.parametrize("lens", [*LENSES.values(), NAMED], ids=[*LENSES, "named"])
def test_a_lens_is_read_as_it_was_written(lens, tmp_path):
    lens.write(tmp_path / "lens.safetensors")
    again = cf.lens.read(tmp_path / "lens.safetensors")
    assert (again.digest, repr(again), again.features) == (lens.digest, repr(lens), lens.features)
    np.testing.assert_array_equal(again(X), lens(X))


def test_a_file_holds_plain_arrays_and_says_what_they_are(written):
    arrays = load_file(written)
    np.testing.assert_array_equal(arrays["0.scale"], NAMED.steps[0].scale)
    size = struct.unpack("<Q", written.read_bytes()[:8])[0]
    about = json.loads(json.loads(written.read_bytes()[8 : 8 + size])["__metadata__"][METADATA_KEY])
    assert (about["format"], about["digest"]) == (1, NAMED.digest)
    assert [step["kind"] for step in about["steps"]] == ["standardize", "unit"]


def test_the_name_of_the_file_says_what_it_is(tmp_path, refuses):
    with refuses("has an ending that does not fit a lens: use .safetensors", cf.FileError):
        NAMED.write(tmp_path / "lens.pkl")
    with refuses("there is no folder", cf.FileError):
        NAMED.write(tmp_path / "none" / "lens.safetensors")


def test_other_files_are_refused(tmp_path, refuses):
    path = tmp_path / "other.safetensors"
    with refuses("does not exist", cf.FileError):
        cf.lens.read(path)
    with refuses("is not a plain file", cf.FileError):
        cf.lens.read(tmp_path)
    save_file({"weight": np.ones(3)}, path)
    with refuses("is not a lens: write one with lens.write", cf.FileError):
        cf.lens.read(path)
    path.write_bytes(b"")
    with refuses("is not a safetensors file that can be read", cf.FileError):
        cf.lens.read(path)


def rewrite(path, change):
    """Write the file again with other arrays or facts."""
    size = struct.unpack("<Q", path.read_bytes()[:8])[0]
    about = json.loads(json.loads(path.read_bytes()[8 : 8 + size])["__metadata__"][METADATA_KEY])
    arrays = load_file(path)
    change(about, arrays)
    save_file(arrays, path, {METADATA_KEY: json.dumps(about)})


CHANGES = {
    "another value": lambda about, arrays: arrays["0.scale"].__setitem__(0, 2.0),
    "another digest": lambda about, arrays: about.update(digest="0" * 16),
    "no digest": lambda about, arrays: about.pop("digest"),
    "another name": lambda about, arrays: about["steps"][0]["features"].__setitem__(0, "z"),
    "the same name twice": lambda about, arrays: about["steps"][0]["features"].__setitem__(0, "b"),
    "an unknown kind": lambda about, arrays: about["steps"][0].update(kind="pickle"),
    "another field": lambda about, arrays: about["steps"][0].update(code="import os"),
    "another array": lambda about, arrays: arrays.update({"0.code": np.ones(1)}),
    "a spare array": lambda about, arrays: arrays.update({"9.scale": np.ones(1)}),
    "no array": lambda about, arrays: arrays.pop("0.scale"),
    "another shape": lambda about, arrays: arrays.update({"0.scale": np.ones(5)}),
    "another type": lambda about, arrays: arrays.update({"0.scale": np.ones(6, np.float32)}),
    "not finite": lambda about, arrays: arrays["0.center"].__setitem__(0, np.nan),
    "not positive": lambda about, arrays: arrays["0.scale"].__setitem__(0, 0.0),
    "positions out of range": lambda about, arrays: about["steps"][0].update(left_out=[99]),
    "no steps": lambda about, arrays: (about.update(steps=[]), arrays.clear()),
    "steps that are none": lambda about, arrays: about.update(steps=3),
    "a step that is none": lambda about, arrays: about.update(steps=["unit"]),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_file_that_is_not_what_was_written_is_refused(change, written, refuses):
    rewrite(written, change)
    with refuses("is a damaged lens .*: write it again", cf.FileError):
        cf.lens.read(written)


def test_a_newer_format_is_refused(written, refuses):
    rewrite(written, lambda about, arrays: about.update(format=2))
    with refuses("has format 2, newer than the 1 known here: upgrade crossfusion", cf.FileError):
        cf.lens.read(written)


@pytest.mark.parametrize("version", [0, -1, "1", None, True])
def test_what_is_not_a_format_is_damage(version, written, refuses):
    rewrite(written, lambda about, arrays: about.update(format=version))
    with refuses(f"is a damaged lens .its format is {version!r}.", cf.FileError):
        cf.lens.read(written)


def test_a_number_of_features_that_is_not_that_of_the_arrays_takes_no_memory(written, refuses):
    rewrite(written, lambda about, arrays: about["steps"][0].update(dim=2**22, features=None))
    tracemalloc.start()
    with refuses("is a damaged lens .an array has shape", cf.FileError):
        cf.lens.read(written)
    assert tracemalloc.get_traced_memory()[1] < 2**24
    tracemalloc.stop()


def test_damaged_bytes_are_refused_or_harmless(written):
    content = written.read_bytes()
    rng = np.random.default_rng(0)
    for _ in range(200):
        damaged = bytearray(content)
        for place in rng.integers(0, len(content), 3):
            damaged[place] = rng.integers(0, 256)
        written.write_bytes(damaged[: rng.integers(1, len(content) + 1)])
        with suppress(cf.FileError):
            assert cf.lens.read(written).digest == NAMED.digest


def test_without_its_library_a_file_names_it(python, written):
    code = f"""
import sys
sys.modules["safetensors"] = sys.modules["safetensors.numpy"] = None
import crossfusion as cf
try:
    cf.lens.read({str(written)!r})
except cf.MissingDependencyError as problem:
    print(problem)
"""
    assert python(code) == "a file of a lens needs safetensors, which is not installed: pip install 'crossfusion[lens]'"
