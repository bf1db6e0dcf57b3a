"""Renames each key and swaps each scalar's type in every body: the schemas must notice nearly always."""

import copy
import sys
from collections import Counter, defaultdict

import wire


def positions(value, free, at=()):
    mark = free.get(at)
    if mark is True:
        return
    if isinstance(value, dict):
        for key, child in value.items():
            if mark == "rest" and key != "type":
                continue
            yield (*at, key), child
            yield from positions(child, free, (*at, key))
    elif isinstance(value, list):
        for i, child in enumerate(value):
            if not isinstance(child, (dict, list)):
                yield (*at, i), child
            yield from positions(child, free, (*at, i))


def swapped(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, str):
        return 7
    return {}  # null




def main(out):
    done, survived = Counter(), defaultdict(list)
    for agent, context, request, body in wire.bodies(out):
        keys = (request["wire"], request["provider_instance"], request["client_api"])
        effective = wire.effective(*keys)
        for path, value in list(positions(body, effective.free(body))):
            for kind in ("rename", "type"):
                if kind == "rename" and isinstance(path[-1], int):
                    continue
                if kind == "type" and isinstance(value, (dict, list)):
                    continue
                *parent, last = path
                mutant = copy.copy(body)
                node = mutant
                for key in parent:
                    node[key] = copy.copy(node[key])
                    node = node[key]
                if kind == "rename":
                    items = [(f"{k}_" if k == last else k, v) for k, v in node.items()]
                    node.clear()
                    node.update(items)
                else:
                    node[last] = swapped(value)
                done[keys[0], kind] += 1
                if effective.validator.is_valid(mutant):
                    shape = "/".join("*" if isinstance(p, int) else p for p in path)
                    survived[keys[0], kind, shape].append(f"{agent}/{context}")
    lost = Counter()
    for (name, kind, shape), where in survived.items():
        lost[name, kind] += len(where)
    for name in wire.WIRES:
        n, m = done[name, "rename"], done[name, "type"]
        a, b = lost[name, "rename"], lost[name, "type"]
        if n + m:
            print(f"{name:24} renames {n - a:6}/{n:<6} types {m - b:6}/{m:<6} {100 * (n + m - a - b) / (n + m):6.2f} %")
    total, gone = sum(done.values()), sum(lost.values())
    print(f"{'all':24} {total - gone}/{total} {100 * (total - gone) / total:.2f} %")
    for (name, kind, shape), where in sorted(survived.items()):
        print(f"  survivor: {name} {kind} /{shape}: {len(where)}, first {where[0]}")
    return total and gone / total > 0.02


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
