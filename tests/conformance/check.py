"""Checks compiled bodies, and hand-made wrong ones, against the SDKs' types and the project's schemas."""

import copy
import json
import sys
import tomllib
from collections import Counter
from pathlib import Path

import formats
import wire

HERE = Path(__file__).resolve().parent


class Exceptions:
    def __init__(self, path):
        self.entries = tomllib.loads(path.read_text())["exception"]
        self.used = Counter()
        self.concerned = set()  # formats and instances that had bodies

    def excuse(self, format_, instance, body):
        entries = [
            (i, e)
            for i, e in enumerate(self.entries)
            if e["wire"] == format_ and e.get("instance", instance) == instance
        ]

        def excused(kind, at):
            for i, e in entries:
                if e["kind"] == kind and matches(e["at"], at, body):
                    self.used[i] += 1
                    return True
            return False

        return excused


def matches(pattern, at, body):
    segments = pattern.split("/")[1:]
    if len(segments) != len(at):
        return False
    for segment, key in zip(segments, at):
        if segment == "*":
            if not isinstance(key, int):
                return False
        elif "=" in segment and isinstance(key, int):
            name, value = segment.split("=", 1)
            if body[key].get(name) != value:
                return False
        elif segment != key:
            return False
        if isinstance(body, list) or (isinstance(body, dict) and key in body):
            body = body[key]
    return True


def names(request):
    return wire.names(request["wire"], request["provider_instance"], request["client_api"])


def show(at):
    return "/" + "/".join(map(str, at))


def accept(out, exceptions):
    """Every compiled body must satisfy both."""
    failures, seen = [], Counter()
    for agent, context, request, body in wire.bodies(out):
        seen[request["wire"]] += 1
        exceptions.concerned |= {(request["wire"], None), (request["wire"], request["provider_instance"])}
        where = f"{agent}/{context}"
        for error in wire.effective(request["wire"], *names(request)).errors(body):
            failures.append(f"{where}: schema: {error:.300}")
        excused = exceptions.excuse(request["wire"], request["provider_instance"], body)
        for at, text in formats.check(request["wire"], body, excused):
            failures.append(f"{where}: types: {show(at)}: {text}")
    return failures, seen


def apply(body, patch):
    """`{"/a/0/b": value}` sets, `{"/a": {"$delete": true}}` removes, `"/a/-"` appends."""
    body = copy.deepcopy(body)
    for pointer, value in patch.items():
        *path, last = pointer.split("/")[1:]
        target = body
        for key in path:
            target = target[int(key) if isinstance(target, list) else key]
        if isinstance(target, list):
            if last == "-":
                target.append(value)
                continue
            last = int(last)
        if value == {"$delete": True}:
            del target[last]
        else:
            target[last] = value
    return body


def reject(out, exceptions):
    """Every wrong body must be refused by the schema, and by the types unless it says `types: false`."""
    failures, seen = [], Counter()
    for path in sorted((HERE / "wrong").glob("*.json")):
        format_ = path.stem
        cases = json.loads(path.read_text())
        for case in cases:
            base, instance = case.get("base"), case.get("instance")
            if isinstance(base, str):
                agent = Path(out) / base.split("/")[0]
                request = json.loads((agent / "request.json").read_text())
                body = json.loads((Path(out) / f"{base}.json").read_text())
                assert request["wire"] == format_, f"{path.name}: {case['name']}: {base} is {request['wire']}"
                keys = names(request)
            else:
                body, keys = base, (instance,) if instance else ()
            schema = wire.effective(format_, *keys)
            excused = Exceptions(HERE / "exceptions.toml").excuse(format_, keys[-1] if keys else None, body)
            label = f"{format_}: {case['name']}"
            for error in schema.errors(body):
                failures.append(f"{label}: the base is wrong already: {error:.300}")
            for at, text in formats.check(format_, body, excused):
                failures.append(f"{label}: the base is wrong already: types: {show(at)}: {text}")
            wrong = apply(body, case["patch"])
            if wrong == body:
                failures.append(f"{label}: the patch changes nothing")
            if not schema.errors(wrong):
                failures.append(f"{label}: the schema accepts it")
            excused = Exceptions(HERE / "exceptions.toml").excuse(format_, keys[-1] if keys else None, wrong)
            refused = bool(formats.check(format_, wrong, excused))
            if refused != case.get("types", True):
                failures.append(f"{label}: the types {'refuse' if refused else 'accept'} it")
            seen[format_, refused] += 1
    return failures, seen


def main(out):
    problems = [f"{w}: {p}" for w in wire.WIRES for p in wire.lint(w)]
    exceptions = Exceptions(HERE / "exceptions.toml")
    failures, bodies = accept(out, exceptions)
    problems += failures
    failures, wrong = reject(out, exceptions)
    problems += failures
    for i, e in enumerate(exceptions.entries):
        if not exceptions.used[i] and (e["wire"], e.get("instance")) in exceptions.concerned:
            problems.append(f"exceptions.toml: {e['wire']} {e.get('instance', '')} {e['at']}: excuses nothing")
    for name in sorted(formats.FORMATS):
        both, schema = wrong[name, True], wrong[name, False]
        print(f"{name:24} {bodies[name]:5} bodies accepted, {both:3} wrong ones refused by both, {schema:3} by the schema alone")
    total = sum(n for (_, by_types), n in wrong.items() if by_types)
    print(f"{'':24} {sum(bodies.values()):5} bodies          {total:3}")
    missing = [n for n in formats.FORMATS if not bodies[n]]
    if missing:
        print("no bodies of: " + ", ".join(missing))
    if problems:
        print(f"{len(problems)} problems:")
        for p in problems[:60]:
            print("  " + p)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
