"""Wire schemas: loading, extensions, free-form positions."""

import copy
import functools
import json
from pathlib import Path

import jsonschema_rs

ROOT = Path(__file__).resolve().parents[2]
WIRE = ROOT / "schemas" / "wire"


def load(wire):
    return json.loads((WIRE / f"{wire}.schema.json").read_text())


def extensions(wire):
    path = WIRE / f"{wire}.extensions.json"
    found = json.loads(path.read_text()) if path.exists() else {}
    return {name: places for name, places in found.items() if not name.startswith("$")}


def shared(wire):
    """The definitions that a file of extensions adds."""
    path = WIRE / f"{wire}.extensions.json"
    return json.loads(path.read_text()).get("$defs", {}) if path.exists() else {}


# The servers of client APIs, where their names differ.
SERVERS = {"LM Studio (Chat Completions)": "LM Studio", "Ollama (OpenAI-compatible)": "Ollama"}
OTHERS = "compatible servers"
BASE = "x-reqc-base"


def names(wire, instance, api):
    """What extensions are listed under for a bundled provider instance: what is particular comes last."""
    server = OTHERS if api == "OpenAI Compatible" and instance not in extensions(wire) else SERVERS.get(api, api)
    return tuple(dict.fromkeys((server, instance)))


class Effective:
    """A schema with the extensions of one provider instance or client API."""

    def __init__(self, wire, names=()):
        self.schema = load(wire)
        self.used = [name for name in dict.fromkeys(names) if name in extensions(wire)]
        if self.used:
            self.schema.setdefault("$defs", {}).update(copy.deepcopy(shared(wire)))
        for entry in self.entries(extensions(wire), self.used):
            for pointer, fields in entry.items():
                if pointer != BASE:
                    self.extend(pointer, fields, self.required_by_others(wire, pointer))
        self.validator = jsonschema_rs.Draft202012Validator(self.schema)

    @classmethod
    def entries(cls, listed, names, seen=None):
        """The entries of these names, each after those that it begins with."""
        seen, found = set() if seen is None else seen, []
        for name in names:
            if name not in seen:
                seen.add(name)
                found += cls.entries(listed, listed[name].get(BASE, []), seen)
                found.append(listed[name])
        return found

    def resolve(self, schema):
        while "$ref" in schema:
            schema = self.schema["$defs"][schema["$ref"].removeprefix("#/$defs/")]
        return schema

    @staticmethod
    def required_by_others(wire, pointer):
        """The fields of a place that some extension requires: another one, which applies with it, may lift this."""
        return {name for places in extensions(wire).values() for name in places.get(pointer, {}).get("x-reqc-required", [])}

    def extend(self, pointer, fields, liftable=frozenset()):
        """Adds (or replaces) properties of every object that the pointer names. `liftable` may be made optional too."""
        segments = [s for s in pointer.split("/") if s]
        found, unions = [self.schema], []
        for segment in segments:
            unions = [u for f in found for u in self.union(f, segment)]
            found = [n for f in found for n in self.step(f, segment)]
        assert found, f"extension {pointer}: no such place"
        fields = dict(fields)
        optional, alternatives = fields.pop("x-reqc-optional", []), fields.pop("x-reqc-alternatives", [])
        unknown, needed = fields.pop("x-reqc-unknown", []), fields.pop("x-reqc-required", [])
        assert unions or not alternatives, f"extension {pointer}: no alternatives"
        for union in unions if alternatives else []:
            union["oneOf"] += copy.deepcopy(alternatives)
        for target in found:
            for name, fragment in fields.items():
                target["properties"][name] = copy.deepcopy(fragment)
            for name in unknown:
                del target["properties"][name]
            lists = [part["required"] for part in (target, *(branch.get("then", {}) for branch in target.get("allOf", []))) if "required" in part]
            required = {name for names in lists for name in names}
            optional = optional + [name for name in unknown if name in required]
            assert set(optional) <= required | liftable, f"extension {pointer}: not required: {optional}"
            for names in lists:
                names[:] = [name for name in names if name not in optional]
            if needed:
                assert set(needed) <= set(target["properties"]), f"extension {pointer}: no such fields: {needed}"
                target["required"] = list(dict.fromkeys([*target.get("required", []), *needed]))

    def union(self, schema, segment):
        """The schema of a member, if it has alternatives."""
        schema = self.resolve(schema)
        member = schema.get("items") if segment == "*" else schema.get("properties", {}).get(segment)
        member = self.resolve(member) if member else {}
        return [member] if "oneOf" in member else []

    def step(self, schema, segment):
        """The schemas of a member: a property, `*` for any element, `key=value` for the alternative it picks, of an element or itself."""
        schema = self.resolve(schema)
        found = []
        if segment == "*" or "=" in segment:
            items = schema.get("items", schema if "=" in segment else None)
            for option in self.options(items) if items else []:
                if segment == "*" or self.picks(option, *segment.split("=", 1)):
                    found.append(option)
        elif segment in schema.get("properties", {}):
            found = self.options(schema["properties"][segment])
        return found

    def options(self, schema):
        schema = self.resolve(schema)
        if "oneOf" in schema:
            return [o for branch in schema["oneOf"] for o in self.options(branch)]
        return [schema]

    def picks(self, schema, key, value):
        prop = schema.get("properties", {}).get(key, {})
        return prop.get("const") == value or value in prop.get("enum", [])

    def errors(self, body):
        if self.schema.get("x-reqc-spelling") == "protobuf":
            body = self.respelt(self.schema, body)
        return [
            "/" + "/".join(map(str, e.instance_path)) + ": " + e.message
            for e in self.validator.iter_errors(body)
        ]

    def respelt(self, schema, value):
        """The value with names in camelCase, and enumerations as their names in the schema."""
        schema = self.resolve(schema)
        if isinstance(value, list) and "items" in schema:
            return [self.respelt(schema["items"], v) for v in value]
        names = schema.get("x-reqc-numbers", [])
        if type(value) is int and 0 <= value < len(names):
            return names[value]
        if isinstance(value, str) and value not in schema.get("enum", [value]):
            return next((v for v in schema["enum"] if str(v).lower() == value.lower()), value)
        if not isinstance(value, dict):
            return value
        known, found = schema.get("properties", {}), {}
        for name, child in value.items():
            camel = name[0] + name.title().replace("_", "")[1:] if "_" in name else name
            if name not in known and camel in known and camel not in value and "x-reqc-free" not in schema:
                name = camel
            rest = schema.get("additionalProperties") or {}
            found[name] = self.respelt(known.get(name, rest), child)
        return found

    def free(self, body):
        """Pointers (as tuples) of free-form positions in the body, with True or "rest"."""
        found = {}
        self._free(self.schema, body, (), found)
        return found

    def _free(self, schema, value, at, found):
        if schema is False or schema is True:
            return
        schema = self.resolve(schema)
        mark = schema.get("x-reqc-free")
        if mark is True and not isinstance(value, str):
            found[at] = True
        elif mark == "rest":
            found[at] = "rest"
        for key in ("allOf", "anyOf"):
            for branch in schema.get(key, ()):
                self._free(branch, value, at, found)
        if "oneOf" in schema:
            for branch in self.branches(schema, value):
                self._free(branch, value, at, found)
        for key in ("then", "else"):
            if key in schema:
                self._free(schema[key], value, at, found)
        if isinstance(value, dict):
            for name, child in value.items():
                if name in schema.get("properties", {}):
                    self._free(schema["properties"][name], child, (*at, name), found)
                elif isinstance(schema.get("additionalProperties"), dict):
                    self._free(schema["additionalProperties"], child, (*at, name), found)
        if isinstance(value, list) and "items" in schema:
            for i, child in enumerate(value):
                self._free(schema["items"], child, (*at, i), found)

    def branches(self, schema, value):
        key = schema.get("x-reqc-discriminator")
        if not isinstance(value, dict) or not key:
            return []
        given = value.get(key, schema.get("x-reqc-discriminator-default"))
        found = []
        for branch in schema["oneOf"]:
            resolved = self.resolve(branch)
            if self.picks(resolved, key, given):
                found.append(branch)
        return found


@functools.cache
def effective(wire, *names):
    return Effective(wire, names)


def lint(wire):
    """What schemas/README.md promises about the form of a schema, alone and with each of its extensions."""
    found = lint_schema(load(wire))
    # An extension may remove the fields that use a definition. Unused definitions are found without extensions, below.
    definitions = [*shared(wire), *load(wire).get("$defs", {})]
    for name in extensions(wire):
        unused = {f"$defs/{definition} is never used" for definition in definitions}
        problems = set(lint_schema(Effective(wire, [name]).schema)) - unused
        found += [f"with {name}: {p}" for p in sorted(problems) if p not in found]
    text = (WIRE / f"{wire}.extensions.json").read_text() if shared(wire) else ""
    found += [f"extensions: $defs/{d} is never used" for d in shared(wire) if f'"#/$defs/{d}"' not in text]
    return found


def lint_schema(schema):
    problems = []
    if not jsonschema_rs.meta.is_valid(schema):
        problems.append("not a JSON Schema")

    def resolve(node):
        while "$ref" in node:
            node = schema["$defs"][node["$ref"].removeprefix("#/$defs/")]
        return node

    def walk(node, at):
        if isinstance(node, dict):
            if "$ref" in node:
                name = node["$ref"].removeprefix("#/$defs/")
                if name not in schema["$defs"]:
                    problems.append(f"{at}: {node['$ref']} does not exist")
            if "oneOf" in node:
                key = node.get("x-reqc-discriminator")
                if not key:
                    problems.append(f"{at}: oneOf without x-reqc-discriminator")
                seen = set()
                for branch in node["oneOf"]:
                    if resolve(branch).get("type") == "null":  # it has no members
                        continue
                    prop = resolve(branch).get("properties", {}).get(key, {})
                    values = [prop["const"]] if "const" in prop else prop.get("enum")
                    if not values:
                        problems.append(f"{at}: a branch without {key}")
                    for v in values or []:
                        if v in seen:
                            problems.append(f"{at}: two branches for {key} {v}")
                        seen.add(v)
            if "anyOf" in node and "x-reqc-message" not in node and not at.endswith("/not"):
                problems.append(f"{at}: anyOf without x-reqc-message")
            if "properties" in node and node.get("type") == "object":
                closed = node.get("additionalProperties") is False or "x-reqc-free" in node or "oneOf" in node
                if not closed:
                    problems.append(f"{at}: an open object that is not declared free")
                if not node.get("title") and not node.get("description"):
                    problems.append(f"{at}: neither title nor description")
            for k, v in node.items():
                if k in ("properties", "$defs", "dependentSchemas"):
                    for name, child in v.items():
                        walk(child, f"{at}/{k}/{name}")
                else:
                    walk(v, f"{at}/{k}")
        elif isinstance(node, list):
            for i, v in enumerate(node):
                walk(v, f"{at}/{i}")

    walk(schema, "")
    refs = json.dumps(schema)
    for name in schema.get("$defs", {}):
        if f'"#/$defs/{name}"' not in refs:
            problems.append(f"$defs/{name} is never used")
    return problems


WIRES = sorted(p.name.removesuffix(".schema.json") for p in WIRE.glob("*.schema.json"))


def bodies(out):
    """(agent slug, context, request, body) of every body under `reqc compile --out`."""
    for folder in sorted(path for path in Path(out).iterdir() if path.is_dir()):
        request = json.loads((folder / "request.json").read_text())
        for path in sorted(folder.glob("*.json")):
            if path.name != "request.json":
                yield folder.name, path.stem, request, json.loads(path.read_text())
