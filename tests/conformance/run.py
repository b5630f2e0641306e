"""Compares the project with recorded answers of Kubernetes: `python tests/conformance/run.py PATH...`

PATH: a file (.json, .jsonl, gzipped or not) in one of the formats below, or a directory of them; the format is told by the content.
Prints agreed / total per file with what was not compared and why (which counts nowhere else), the first disagreements, and as last line
`agreed N of M`. Exit code: 0 everything that is compared agrees, listed exceptions apart; 1 a disagreement that is not listed; 2 nothing
to compare, or a file that cannot be read.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent.parent))

from corpus import UnreadableFile, entries, files
from report import Report

SHOWN = 10
# category (a module beside this file, with `run(paths) -> Report`) -> whether an entry is in its format, first match wins
FORMATS: dict[str, Callable[[dict[str, Any]], bool]] = {
    "allocator_random": lambda e: "problem" in e and "observed" in e and ("reference" in e or "profile" in e),
    "allocator": lambda e: "problem" in e and "observed" in e,
    "cel": lambda e: "expression" in e and "kind" in e,
    "semver": lambda e: "isSemver" in e or ("a" in e and "compareTo" in e),
    "claim_helpers": lambda e: "function" in e and "input" in e and "expected" in e,
    "taint_rules": lambda e: "events" in e and "expectedSlices" in e,
    "kubelet": lambda e: "initial" in e and "operation" in (e.get("steps") or [{}])[0],
    "apiserver": lambda e: "method" in (e.get("steps") or [{}])[0],
    "validation": lambda e: "operation" in e and "valid" in e and "errors" in e,
    "checkpoints": lambda e: "file" in e and "decoded" in e,
    "quantities": lambda e: ("input" in e and ("canonical" in e or "errorClass" in e)) or ("a" in e and "compare" in e),
}
# formats that the project has nothing to compare with
NOTHING: dict[str, Callable[[dict[str, Any]], bool]] = {
    "the project has no controller that publishes ResourceSlices": lambda e: "wantedPools" in e and "expectedSlices" in e,
    "users and permissions of recorded request sequences": lambda e: "users" in e and "clusterRoles" in e,
}


def category_of(path: Path) -> str | None:
    """The category of a file, None if no format fits. Raises UnreadableFile."""
    found = entries(path)
    return next((name for name, fits in FORMATS.items() if found and fits(found[0])), None)


def reason_of(path: Path) -> str:
    """Why a file without category is not compared."""
    found = entries(path)
    known = next((f"{len(found)} cases: {reason}" for reason, fits in NOTHING.items() if found and fits(found[0])), None)
    return known or f"in none of the formats: {', '.join(FORMATS)}"


def _malformed(run: Callable[[list[Path]], Report], path: Path) -> str:
    """The first case of a file that is not in its format, found by comparing each one alone."""
    with tempfile.TemporaryDirectory() as folder:
        alone = Path(folder, "case.json")
        for number, entry in enumerate(entries(path), 1):
            alone.write_text(json.dumps([entry]), encoding="utf-8")
            try:
                run([alone])
            except Exception as error:  # whatever a wrong case leads to
                name = entry.get("id") or entry.get("name") or ""
                return f"case {number}{f' ({name})' if name else ''} is malformed: {type(error).__name__}: {error}"
    return "a case is malformed"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH")
    parser.add_argument("--all", action="store_true", help="show all disagreements and exceptions")
    options = parser.parse_args(arguments)
    try:
        sorted_files: dict[str, list[Path]] = {}
        for path in files(options.paths):
            category = category_of(path)
            if category is None:
                print(f"{path}: not compared ({reason_of(path)})")
            else:
                sorted_files.setdefault(category, []).append(path)
    except UnreadableFile as error:
        print(error, file=sys.stderr)
        return 2
    if not sorted_files:
        print("nothing to compare", file=sys.stderr)
        return 2
    whole = Report(0, 0)
    for category, paths in sorted_files.items():
        run = importlib.import_module(category).run
        for path in paths:
            try:
                report: Report = run([path])
            except (UnreadableFile, LookupError, TypeError, ValueError, AttributeError, AssertionError) as error:
                text = str(error) if isinstance(error, UnreadableFile) else f"{path}: {_malformed(run, path)}"
                print(text, file=sys.stderr)
                return 2
            notes = f" ({'; '.join(report.remarks)})" if report.remarks else ""
            excepted = f", {len(report.exceptions)} listed exceptions" if report.exceptions else ""
            print(f"{category}: {path.name}: {report.agreed} / {report.total}{excepted}{notes}", flush=True)
            whole += report
    limit = None if options.all else SHOWN
    for disagreement in whole.disagreements[:limit]:
        print(f"  {disagreement}")
    if limit and len(whole.disagreements) > limit:
        print(f"  ... and {len(whole.disagreements) - limit} more")
    for each in whole.exceptions if options.all else ():
        print(f"  listed: {each.disagreement} ({each.reason}; {each.source})")
    if whole.omitted:
        print(f"not compared, in the files above: {sum(whole.omitted.values())}")
    print(f"agreed {whole.agreed} of {whole.total}")
    return 1 if whole.disagreements else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
