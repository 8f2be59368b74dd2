"""What the tests share."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

import crossfusion as cf
from crossfusion.moments import kernel
from tests.helpers import PATIENCE

settings.register_profile("suite", deadline=None, derandomize=True, database=None, max_examples=100)
settings.load_profile("suite")


def pytest_configure(config: pytest.Config) -> None:
    """Import dcor once before tests run side by side: it compiles, and two processes that do so at once abort."""
    if getattr(config.option, "numprocesses", None) and not hasattr(config, "workerinput"):
        subprocess.run([sys.executable, "-c", "import dcor"], capture_output=True)  # it may not be installed


@pytest.fixture(params=["numpy", "compiled"])
def route(request, monkeypatch) -> str:
    """The C kernel and its NumPy twin."""
    if request.param == "numpy":
        monkeypatch.setattr(kernel, "compiled", None)
    return str(request.param)


@pytest.fixture(scope="session")
def refuses() -> Callable[..., Any]:
    """Context that expects an error of crossfusion in one line that matches a pattern."""

    @contextmanager
    def refused(pattern: str, error: type[cf.CrossfusionError] = cf.InputError) -> Iterator[None]:
        with pytest.raises(error, match=pattern) as caught:
            yield
        assert isinstance(caught.value, cf.CrossfusionError)
        assert "\n" not in str(caught.value)

    return refused


@pytest.fixture
def double() -> Iterator[None]:
    """JAX computes with 64 bits."""
    import jax
    from jax import experimental

    enable = jax.enable_x64 if hasattr(jax, "enable_x64") else experimental.enable_x64  # where it was at first
    with enable(True):
        yield


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium, without a window."""
    from tests.helpers.browser import open_browser

    with open_browser() as opened:
        yield opened


@pytest.fixture(scope="session")
def python(pytestconfig) -> Callable[..., str]:
    """Run code in a fresh interpreter and return what it prints; warnings are errors there too, or as -W says."""
    warnings = (pytestconfig.getoption("pythonwarnings") or ["error"])[-1]

    def run(code: str, cwd: Path | None = None, **environment: str) -> str:
        command = [sys.executable, "-W", warnings, "-c", code]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=PATIENCE, cwd=cwd, env=os.environ | environment
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    return run
