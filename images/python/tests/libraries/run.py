#!/usr/bin/env python3
"""Real libraries under their own suites, plain and split: `make libraries`.

`run.py [--way WAY]... [--mutants N] [--write] [NAME...]` fetches the libraries of table.toml, runs each suite every way,
says what differs from plain, and ends with a table; `--write` puts the table into docs/SPLIT.md. Exit code 1 when a rule
of `report.py` is broken.
"""

import argparse
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import mutants  # noqa: E402
import report  # noqa: E402
import sources  # noqa: E402
import ways  # noqa: E402

WAYS = ("plain", "split", "modes")


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(description="real libraries under their own suites, plain and split")
    parser.add_argument("names", nargs="*", help="libraries of table.toml (default: all)")
    parser.add_argument(
        "--way",
        action="append",
        choices=(*WAYS, "shared", "local", "local-shared"),
        help="default: plain, split and modes",
    )
    parser.add_argument(
        "--keep", action="store_true", help="do not repeat what an earlier run has kept in target/libraries"
    )
    parser.add_argument(
        "--mutants", type=int, default=0, metavar="N", help="plant N mistakes in each, compare plain and split"
    )
    parser.add_argument("--write", action="store_true", help="put the table into docs/SPLIT.md")
    chosen = parser.parse_args(words)
    rows = [row for row in sources.table() if not chosen.names or row.name in chosen.names]
    unknown = set(chosen.names) - {row.name for row in rows}
    if unknown:
        parser.error(f"not in table.toml: {', '.join(sorted(unknown))}")
    told = []
    for library in rows:
        tree = sources.fetch(library)
        files = library.tests()
        ran = {}
        for way in chosen.way or WAYS:
            kept = sources.CACHE / "results" / library.name / f"{way}.json"
            if way == "modes" and "split" in ran and not library.shared:
                ran["split"].write(kept)  # the very same attempt
            elif not (chosen.keep and kept.exists()):
                started = time.monotonic()
                ways.run(library, tree, files, way).write(kept)
                print(f"{library.title}, {way}: {time.monotonic() - started:.1f} s", file=sys.stderr, flush=True)
            ran[way] = ways.Ran.read(kept)
        told.append(report.Compared(library, ran))
        print(told[-1].text(), flush=True)
        if chosen.mutants:
            planted(told[-1], files, chosen.mutants)
    print(report.markdown(told))
    if chosen.write:
        report.write(told)
    broken = report.broken(told)
    for line in broken:
        print(f"BROKEN: {line}")
    return 1 if broken else 0


def planted(compared: report.Compared, files: list[str], count: int) -> None:
    """Each mutant plain and, of the ways that were asked for, the last."""
    library, way = compared.library, list(compared.ran)[-1]
    files = [file for file in files if file not in library.heavy]
    base_plain, base = (compared.ran[each].of(files) for each in ("plain", way))
    for mutant in mutants.planted(library, count):
        plain = ways.run(library, mutant.tree, files, "plain")
        split = ways.once(library, mutant.tree, files, way)
        lines = mutants.differing(plain, split, base_plain, base)
        compared.mutants += 1
        compared.caught += mutants.caught(split, base)
        compared.differing += [f"{mutant.what}: {line}" for line in lines]
        seen = "caught" if mutants.caught(split, base) else "not caught"
        print(f"   mutant {mutant.number}: {mutant.what}: {seen}, {len(lines)} differ", flush=True)
        for line in lines[:5]:
            print(f"      {line}", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
