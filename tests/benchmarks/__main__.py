"""Runs all benchmarks one after another, or those named: `python -m tests.benchmarks [window …]`.

Nothing else should run on the machine meanwhile; a quarter of an hour is usual.
"""

import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent


def main(names: list[str]) -> int:
    """Run them; returns how many ended with an error."""
    known = sorted(path.stem.removeprefix("bench_") for path in FOLDER.glob("bench_*.py"))
    unknown = [name for name in names if name not in known]
    if unknown:
        sys.stderr.write(f"There is no benchmark {unknown[0]!r}; there are {', '.join(known)}.\n")
        return 2
    failed = 0
    for name in names or known:
        print(f"\n##### {name}", flush=True)
        command = [sys.executable, "-m", f"tests.benchmarks.bench_{name}"]
        done = subprocess.run(command, cwd=FOLDER.parents[1], check=False)  # noqa: S603 - our own
        failed += done.returncode != 0
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
