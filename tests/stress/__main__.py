"""Run all parts, or some, and print what came of them."""

import argparse
import re
import secrets
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from tests.helpers import PATIENCE
from tests.stress.parts import PARTS

ROOT = Path(__file__).parents[2]
GRACE = 2.0 * PATIENCE + 120  # seconds that a part may need for its last case, and to end
USED = 0.95  # of the time, so that the last cases end within it
ENOUGH = 10  # findings of a part: more of them say nothing new


@dataclass
class Found:
    """What came of a part."""

    name: str
    cases: int = 0
    seconds: float = 0.0
    outcomes: str = ""
    findings: list[str] = field(default_factory=list)

    @property
    def row(self) -> tuple[str, str, str, str]:
        """Cells of the table."""
        said = f"{len(self.findings)} FOUND; {self.outcomes}" if self.findings else self.outcomes
        return self.name, f"{self.cases:,}", f"{self.seconds:.0f}", said


def watch(name: str, seed: int, seconds: float) -> Found:
    """Run a part in a process of its own, and another one after a case that it died of."""
    found, start = Found(name), time.monotonic()
    outcomes: dict[str, int] = {}
    while (left := seconds - (time.monotonic() - start)) > 0 and len(found.findings) < ENOUGH:
        lines, last = run_once(name, seed, found.cases, left)
        for line in lines:
            if line.startswith("ended "):
                _, outcome = line.split(" ", 1)
                outcomes[outcome] = outcomes.get(outcome, 0) + 1
                found.cases += 1
            elif line.startswith("found "):
                found.findings.append(line[6:])
                found.cases += 1
        if not last:
            break
        found.findings.append(last)
        found.cases += 1
    found.seconds = time.monotonic() - start
    found.outcomes = ", ".join(f"{number:,} {outcome}" for outcome, number in sorted(outcomes.items()))
    return found


def run_once(name: str, seed: int, first: int, seconds: float) -> tuple[list[str], str]:
    """What a process printed, and the case that it died of, if it did."""
    code: object
    try:
        done = subprocess.run(
            command(name, seed, first, seconds),
            cwd=ROOT,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=seconds + GRACE,
        )
        printed, said, code = done.stdout, done.stderr, done.returncode
    except subprocess.TimeoutExpired as late:
        printed, said, code = _text(late.stdout), _text(late.stderr), "no end"
    lines = printed.splitlines()
    if lines and lines[-1] == "over":
        return lines, ""
    case = re.findall(r"^case (\d+)$", said, re.MULTILINE) or [str(first)]
    told = "\n".join(line for line in said.splitlines() if not line.startswith("case "))
    return lines, f"{repeated(name, seed, int(case[-1]))}\n  the process ended with {code}: {told[-1500:]}"


def command(name: str, seed: int, first: int, seconds: float) -> list[str]:
    """The process of a part."""
    words = [name, str(seed), "--first", str(first), "--seconds", f"{seconds:.0f}"]
    return [sys.executable, "-m", "tests.stress.part", *words]


def _text(output: object) -> str:
    return output.decode("utf-8", "replace") if isinstance(output, bytes) else str(output or "")


def repeated(name: str, seed: int, case: int) -> str:
    """The command that repeats a case."""
    return f"python -m tests.stress.part {name} {seed} --case {case}"


def table(rows: list[Found]) -> str:
    """What, cases, seconds, outcome."""
    cells = [("what", "cases", "seconds", "outcome"), *(found.row for found in rows)]
    widths = [max(len(row[k]) for row in cells) for k in range(3)]
    return "\n".join(
        f"{row[0].ljust(widths[0])}  {row[1].rjust(widths[1])}  {row[2].rjust(widths[2])}  {row[3]}" for row in cells
    )


def main() -> int:
    """Run what the command line asks for; the exit code is 1 if anything was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.stress", description=__doc__)
    parser.add_argument("--seed", type=int, help="what the cases are drawn from; another one in each run by default")
    parser.add_argument("--minutes", type=float, default=10.0, help="of all parts together (10)")
    parser.add_argument("--jobs", type=int, default=2, help="parts that run at once (2)")
    parser.add_argument("--only", choices=PARTS, action="append", help="these parts; may be repeated")
    asked = parser.parse_args()
    seed = secrets.randbelow(10**6) if asked.seed is None else asked.seed
    names = asked.only or list(PARTS)
    jobs = min(asked.jobs, len(names))
    print(f"seed {seed}, {len(names)} parts, {asked.minutes:g} minutes", flush=True)
    start = time.monotonic()
    left = {name: PARTS[name].share for name in names}

    def one(name: str) -> Found:
        print(f"  {name}: {PARTS[name].about}", flush=True)
        until = 60 * asked.minutes * USED - (time.monotonic() - start)
        found = watch(name, seed, max(1.0, until * min(1.0, jobs * left[name] / sum(left.values()))))
        del left[name]
        print(f"  {name}: {found.cases:,} cases, {len(found.findings)} findings", flush=True)
        return found

    with ThreadPoolExecutor(jobs) as pool:
        results = list(pool.map(one, names))
    print(f"\n{table(results)}\n\n{sum(found.cases for found in results):,} cases in {time.monotonic() - start:.0f} s")
    findings = [text for found in results for text in found.findings]
    if findings:
        print(f"\nseed {seed} found:\n\n" + "\n\n".join(findings))
    return bool(findings)


if __name__ == "__main__":
    sys.exit(main())
