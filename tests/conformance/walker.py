"""A closed-world reading of the official SDKs' request types.

The SDKs themselves are lenient: TypedDicts are not checked at run time, iterables are read lazily, pydantic models
coerce and drop. Here a body conforms only if every key at every depth is one that the type declares, every required
key is there, and every value has the declared JSON type as it stands.
"""

import base64
import binascii
import datetime
import enum
import types
import typing

import typing_extensions as te

NONE = type(None)
UNIONS = (typing.Union, types.UnionType)
# Members of unions that are not JSON, or that describe answers of a newer server instead of requests.
NOT_WIRE = ("IO", "PathLike", "Unset", "UnrecognizedStr", "UnrecognizedInt", "FileParam")


class Walker:
    def __init__(self, excused=lambda kind, at: False, dropped=None, strings=()):
        self.excused = excused  # (kind, pointer) -> whether the exceptions allow it
        self.dropped = dropped or {}  # class name -> fields that the API at hand does not have
        self.strings = strings  # classes that are a base64 string on the wire
        self.hints = {}

    def check(self, t, value, at=()):
        """Problems of a value, each a (pointer, text)."""
        t = strip(t)
        if t in (typing.Any, object):
            return []
        if t is None or t is NONE:
            return [] if value is None else [(at, "is not null")]
        origin, args = te.get_origin(t), te.get_args(t)
        if origin is typing.Literal or origin is te.Literal:
            ok = any(value == a and type(value) is type(a) for a in args)
            return [] if ok else [(at, f"{value!r} is none of {list(args)}")]
        if origin in UNIONS:
            return self.union(args, value, at)
        name = getattr(t, "__name__", str(t))
        if name in self.strings:
            t, origin = bytes, None
        if te.is_typeddict(t):
            return self.typed_dict(t, value, at)
        if hasattr(t, "model_fields"):
            return self.model(t, value, at)
        if origin is not None:
            return self.generic(origin, args, value, at)
        if isinstance(t, type) and issubclass(t, enum.Enum):
            ok = any(value == m.value and type(value) is type(m.value) for m in t)
            return [] if ok else [(at, f"{value!r} is no {name}")]
        return self.scalar(t, value, at)

    def scalar(self, t, value, at):
        if t is bytes:
            if isinstance(value, str):
                try:
                    text = value.replace("-", "+").replace("_", "/")
                    base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
                    return []
                except binascii.Error:
                    pass
            return [(at, "is not base64")]
        if t is datetime.datetime:
            t = str
        ok = {
            str: isinstance(value, str),
            bool: isinstance(value, bool),
            int: isinstance(value, int) and not isinstance(value, bool),
            float: isinstance(value, (int, float)) and not isinstance(value, bool),
            dict: isinstance(value, dict),
            list: isinstance(value, list),
        }.get(t)
        if ok is None:
            raise TypeError(f"{at}: the walker does not know {t!r}")
        return [] if ok else [(at, f"{value!r:.60} is no {t.__name__}")]

    def generic(self, origin, args, value, at):
        if issubclass(origin, typing.Mapping.__origin__):
            if not isinstance(value, dict):
                return [(at, "is no object")]
            inner = args[1] if len(args) == 2 else typing.Any
            return [p for k, v in value.items() for p in self.check(inner, v, (*at, k))]
        if not isinstance(value, list):
            return [(at, "is no array")]
        inner = args[0] if args else typing.Any
        return [p for i, v in enumerate(value) for p in self.check(inner, v, (*at, i))]

    def union(self, args, value, at):
        args = [strip(a) for a in args]
        args = [a for a in args if getattr(a, "__name__", "") not in NOT_WIRE and not unknown(a)]
        requests = [a for a in args if te.is_typeddict(a)]
        if requests:  # beside request types, models are what answers are read into
            args = [a for a in args if not hasattr(a, "model_fields")]
        elif any(hasattr(a, "model_fields") for a in args):  # an untyped mapping beside a model says nothing
            args = [a for a in args if not mapping_of_any(a)]
        best = None
        for a in args:
            found = self.check(a, value, at)
            if not found:
                return []
            # The best matching branch: the fewest problems, and none about the tag.
            rank = (sum(p[0][-1:] in (("type",), ("role",)) or p[0] == at for p in found), len(found))
            if best is None or rank < best[0]:
                best = (rank, found)
        return best[1] if best else [(at, "has no type")]

    def typed_dict(self, t, value, at):
        if t not in self.hints:
            hints = te.get_type_hints(t, include_extras=True)
            # `__required_keys__` does not see markers inside string annotations.
            required = {k for k, h in hints.items() if te.get_origin(h) in (te.Required, typing.Required)}
            optional = {k for k, h in hints.items() if te.get_origin(h) in (te.NotRequired, typing.NotRequired)}
            self.hints[t] = hints, required | (t.__required_keys__ - optional)
        hints, required = self.hints[t]
        return self.fields(hints, required, t.__name__, value, at)

    def model(self, t, value, at):
        fields = {(f.alias or f.serialization_alias or k): f for k, f in t.model_fields.items()}
        drop = self.dropped.get(t.__name__, ())
        hints = {k: f.annotation for k, f in fields.items() if k not in drop}
        required = {k for k, f in fields.items() if f.is_required()}
        return self.fields(hints, required, t.__name__, value, at)

    def fields(self, hints, required, name, value, at):
        if not isinstance(value, dict):
            return [(at, f"{value!r:.60} is no {name}")]
        found = []
        for key, child in value.items():
            here = (*at, key)
            if self.excused("free", here):
                continue
            if key not in hints:
                if not self.excused("unknown", here):
                    found.append((here, f"{name} has no such field"))
            else:
                found += self.check(hints[key], child, here)
        for key in required - value.keys():
            if not self.excused("missing", (*at, key)):
                found.append(((*at, key), f"{name} requires it"))
        return found


def strip(t):
    while True:
        origin = te.get_origin(t)
        if origin in (te.Annotated, te.Required, te.NotRequired, typing.Required, typing.NotRequired):
            t = te.get_args(t)[0]
        elif type(t).__name__ == "TypeAliasType":
            t = t.__value__
        elif type(origin).__name__ == "TypeAliasType":  # generic: OptionalNullable[T], Nullable[T]
            value = origin.__value__
            t = value[te.get_args(t)]
        elif type(t).__name__ == "NewType":
            t = t.__supertype__
        else:
            return t


def unknown(t):
    return getattr(t, "__name__", "").startswith("Unknown") and "is_unknown" in getattr(t, "model_fields", ())


def mapping_of_any(t):
    origin = te.get_origin(t)
    return isinstance(origin, type) and issubclass(origin, typing.Mapping.__origin__)
