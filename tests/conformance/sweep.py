"""Checks right bodies, enumerated from the SDKs' types, against the project's schemas: none may be refused.

Reads what `generate.py --all WIRE` prints. What `exceptions.toml` lists under `[[refused]]` may be refused, for its reason."""

import json
import re
import sys
import tomllib
from collections import Counter
from pathlib import Path

import wire

HERE = Path(__file__).resolve().parent
SHOWN = 20


def entries(format_):
    known = tomllib.loads((HERE / "exceptions.toml").read_text()).get("refused", [])
    return [entry for entry in known if format_ in entry["wires"]]


def lists(format_, provider):
    """The names that the fields of a provider are listed under."""
    if provider is None:
        return ()
    return (provider if provider in wire.extensions(format_) else "compatible servers",)


def main(format_):
    known, used, refused, count = entries(format_), Counter(), [], 0
    for line in sys.stdin:
        case = json.loads(line)
        count += 1
        schema = wire.effective(format_, *lists(format_, case.get("provider")))
        for error in schema.errors(case["body"])[:1]:
            excused = next((i for i, entry in enumerate(known) if re.search(entry["says"], error)), None)
            if excused is None:
                refused.append(f"{case['name']} ({case['source']}): {error:.300}")
            else:
                used[excused] += 1
    problems = refused + [f"exceptions.toml: {e['says']}: excuses nothing" for i, e in enumerate(known) if not used[i]]
    print(f"{format_:24} {count:5} right bodies, {sum(used.values())} refused for a known reason, {len(refused)} for none")
    for problem in problems[:SHOWN]:
        print("  " + problem)
    return 1 if problems or not count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
