"""One search in a process of its own: `python -m benchmarks.one CONFIG ENGINE`. Prints the counts in one line."""

from __future__ import annotations

import sys

from benchmarks.toy import toy
from dra_spec.explorer import explore


def main(name: str, engine: str) -> None:
    """`depth` counts the states on the longest shortest path, as the peers do; 0: not known. `search`: seconds after start-up."""
    result = explore(toy(name), engine=engine)
    print(
        f"engine={result.engine} states={result.states} transitions={result.transitions} depth={result.depth + 1} "
        f"holds={int(result.verdict == 'holds')} calls={result.python_calls} bytes={result.bytes_per_state:.1f} "
        f"search={result.seconds - result.startup:.3f}"
    )


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
