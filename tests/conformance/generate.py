#!/usr/bin/env python3
"""Right request bodies, made from the official SDKs' request types.

A walk over the types gives, for every place of a request, a minimal value plus one optional member or one alternative
of a union at a time (nested to a depth). Each is put into a body where the API takes it: a tool result with its call,
a tool choice with tools, a budget below `max_tokens`, a model that has the feature, the beta header. What cannot be
made plausible, or is not surely taken, is dropped (the functions that place a value return None). Ids, signatures and
encrypted contents are made up: they have the form, and no server issued them.

Needs the SDKs that tests/conformance/requirements.txt pins (anthropic, openai, google-genai, mistralai, ollama).

    generate.py --all WIRE [--depth 3] [--no-null]   every body, as JSON Lines on standard output:
                                             {"name", "source", "seen", "provider"?, "beta"?, "body"}
    generate.py --all openrouter --spec specs/openrouter.json
                                             the same from OpenRouter's published OpenAPI file (wire openai-chat)
    generate.py --write DIR --no-null [--spec FILE]    those that show something new, as files: DIR/WIRE/gen-NAME.json
    generate.py --count                      how many each wire gives

WIRE is one of anthropic-messages, openai-chat, openai-responses, google-generate-content, mistral-chat, mistral-fim,
ollama-chat, ollama-generate, llamacpp-infill, or `all`. In CI: for each wire, pipe `--all WIRE` into the check, and fail
on any line that is refused. The output is deterministic for given SDK versions.
"""

import argparse
import copy
import enum
import inspect
import json
import re
import sys
import types
import typing
from pathlib import Path

SEEN = "2026-11"
NONE = type(None)
ANY = object()

# ---------------------------------------------------------------------------------------------------------------------
# Types as data: ("obj", name, {field: (required, node)}), ("lit", values), ("union", nodes), ("arr", node),
# ("map", node), ("scalar", kind), ("null",), ("any",)


class Reader:
    """Reads SDK types (TypedDict, pydantic models, enums, unions, literals)."""

    def __init__(self, models=False, nullable=True):
        self.cache = {}
        self.models = models  # whether pydantic models are request types
        self.nullable = nullable

    def read(self, t):
        import typing_extensions as te

        t = self.strip(t)
        if t in (typing.Any, object):
            return ("any",)
        if t is None or t is NONE:
            return ("null",)
        origin, args = te.get_origin(t), te.get_args(t)
        if origin in (typing.Literal, te.Literal):
            return ("lit", list(args))
        if origin in (typing.Union, types.UnionType):
            names = {getattr(self.strip(a), "__name__", "") for a in args}
            out = []
            requests = any(te.is_typeddict(self.strip(a)) for a in args)
            for a in args:
                a = self.strip(a)
                name = getattr(a, "__name__", str(a))
                if name in ("PathLike", "Unset", "UnrecognizedStr", "UnrecognizedInt") or name.startswith("IO"):
                    continue
                if name.startswith("Unknown") or name in ("type", "GenericAlias", "UnionType", "_UnionGenericAlias"):
                    continue
                if hasattr(a, "model_fields") and requests:
                    continue
                if a is NONE and "Unset" not in names and self.models:
                    continue  # pydantic's default, not a null on the wire
                out.append(self.read(a))
            return out[0] if len(out) == 1 else ("union", out)
        if te.is_typeddict(t):
            return self.lazy(t, self.typed_dict)
        if hasattr(t, "model_fields"):
            return self.lazy(t, self.model)
        if isinstance(t, type) and issubclass(t, enum.Enum):
            return ("lit", [m.value for m in t if not m.value.upper().endswith("UNSPECIFIED")])
        if origin is not None:
            if isinstance(origin, type) and issubclass(origin, typing.Mapping.__origin__):
                return ("map", self.read(args[1]) if len(args) == 2 else ("any",))
            return ("arr", self.read(args[0]) if args else ("any",))
        kinds = {str: "str", bool: "bool", int: "int", float: "float", bytes: "bytes", dict: "map", list: "arr"}
        if t in kinds:
            k = kinds[t]
            return {"map": ("map", ("any",)), "arr": ("arr", ("any",))}.get(k, ("scalar", k))
        return ("scalar", "str")

    def lazy(self, t, make):
        if t not in self.cache:
            node = ["obj", t.__name__, {}]
            self.cache[t] = node
            node[2] = make(t)
        return self.cache[t]

    def typed_dict(self, t):
        import typing_extensions as te

        hints = te.get_type_hints(t, include_extras=True)
        required = {k for k, h in hints.items() if te.get_origin(h) in (te.Required, typing.Required)}
        optional = {k for k, h in hints.items() if te.get_origin(h) in (te.NotRequired, typing.NotRequired)}
        required |= t.__required_keys__ - optional
        # The `type` tags of discriminated unions are listed as required already.
        return {k: (k in required, self.read(h)) for k, h in hints.items()}

    def model(self, t):
        fields = {(f.alias or f.serialization_alias or k): f for k, f in t.model_fields.items()}
        return {k: (f.is_required(), self.read(f.annotation)) for k, f in fields.items()}

    @staticmethod
    def strip(t):
        import typing_extensions as te

        while True:
            origin = te.get_origin(t)
            if origin in (te.Annotated, te.Required, te.NotRequired, typing.Required, typing.NotRequired):
                t = te.get_args(t)[0]
            elif type(t).__name__ == "TypeAliasType":
                t = t.__value__
            elif type(origin).__name__ == "TypeAliasType":
                t = origin.__value__[te.get_args(t)]
            elif type(t).__name__ == "NewType":
                t = t.__supertype__
            else:
                return t


class Spec:
    """Reads an OpenAPI file's schemas into the same nodes."""

    def __init__(self, schemas):
        self.schemas, self.cache = schemas, {}

    def read(self, s, name=""):
        if "$ref" in s:
            ref = s["$ref"].rsplit("/", 1)[1]
            if ref not in self.cache:
                node = ["union", []]
                self.cache[ref] = node
                made = self.read(self.schemas[ref], ref)
                node[:] = list(made)
            return self.cache[ref]
        for key in ("anyOf", "oneOf"):
            if key in s:
                return ("union", [self.read(x, name) for x in s[key]])
        if "allOf" in s:
            return self.read(s["allOf"][0], name)
        kinds = s["type"] if isinstance(s.get("type"), list) else [s.get("type")]
        out = []
        for kind in kinds:
            if kind == "null":
                out.append(("null",))
            elif "enum" in s:
                if not out:
                    out.append(("lit", [v for v in s["enum"] if v is not None]))
            elif kind == "array":
                out.append(("arr", self.read(s.get("items", {}), name)))
            elif kind == "object":
                need = s.get("required", [])
                if "properties" in s:
                    out.append(("obj", name, {k: (k in need, self.read(v, f"{name}_{k}")) for k, v in s["properties"].items()}))
                else:
                    out.append(("map", ("any",)))
            elif kind in ("string", "integer", "number", "boolean"):
                out.append(("scalar", {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}[kind]))
            else:
                out.append(("any",))
        return out[0] if len(out) == 1 else ("union", out)


class Walk:
    def __init__(self, values, nulls=True, hide=()):
        self.values = values  # "Class.field" or "field" -> list of values that stand for the whole member
        self.nulls = nulls
        self.hide = set(hide)  # "Class.field" or ".field" that are never set

    def known(self, cls, field):
        for key in (f"{cls}.{field}", field):
            if key in self.values:
                return self.values[key]
        return None

    def hidden(self, cls, field):
        return f"{cls}.{field}" in self.hide or f".{field}" in self.hide

    def minimal(self, node, cls="", field=""):
        for _, value in self.walk(node, 0, cls, field):
            if value is not None:
                return value
        raise ValueError(f"{cls}.{field}: {node}")

    def walk(self, node, depth, cls="", field=""):
        """(label, value) of every variant; the first is the minimal one."""
        known = self.known(cls, field)
        if known is not None:
            for i, v in enumerate(known):
                yield ("" if i == 0 else f"{i + 1}", copy.deepcopy(v))
            if self.nulls and can_be_null(node):
                yield ("null", None)
            return
        kind = node[0]
        if kind == "null":
            if self.nulls:
                yield ("null", None)
        elif kind == "lit":
            # Items that are sent back must be completed.
            done = [v for v in ("completed", "incomplete", "failed") if v in node[1]]
            for v in done if "completed" in done else node[1]:
                yield (str(v), v)
        elif kind == "union":
            tail = []
            for n in node[1]:
                if n[0] == "null":
                    tail.append(n)
                    continue
                tag = short(n[1]) if n[0] == "obj" else ""
                for label, v in self.walk(n, depth, cls, field):
                    yield (join(tag, label), v)
            for n in tail:
                yield from self.walk(n, depth, cls, field)
        elif kind == "arr":
            if known is None:
                for label, v in self.walk(node[1], depth, cls, field):
                    if v is not None:
                        yield (label, [v])
        elif kind == "obj":
            yield from self.obj(node, depth)
        elif kind == "map":
            yield ("", {"key": "value"})
        elif kind == "scalar":
            for v in {"str": ["text"], "bool": [True, False], "int": [3], "float": [0.5], "bytes": ["AAAA"]}[node[1]]:
                yield (str(v).lower() if isinstance(v, bool) else "", v)
        else:
            yield ("", {"key": "value"})

    def obj(self, node, depth):
        name, fields = short(node[1]), node[2]
        base = {f: self.minimal(n, name, f) for f, (need, n) in fields.items() if need and not self.hidden(name, f)}
        yield ("", base)
        if depth <= 0:
            return
        for f, (need, n) in fields.items():
            if self.hidden(name, f):
                continue
            for label, v in self.walk(n, depth - 1, name, f):
                if f in base and base[f] == v and type(base[f]) is type(v):
                    continue
                yield (join(f, label), copy.deepcopy(base) | {f: v})


def can_be_null(node):
    return node[0] == "union" and any(n[0] == "null" for n in node[1])


def short(name):
    return re.sub(r"^(Beta|ChatCompletion|Response)|(Param|Params)$", "", re.sub(r"Param$", "", name))


def join(a, b):
    return f"{a}-{b}" if a and b else a or b


def field(node, name):
    return node[2][name][1]


def members(node):
    """The object alternatives of a union, below lists."""
    if node[0] == "arr":
        return members(node[1])
    if node[0] == "union":
        return [m for n in node[1] for m in members(n)]
    return [node] if node[0] == "obj" else []


def tag_of(node, key="type"):
    n = node[2].get(key, (0, ("null",)))[1]
    return n[1][0] if n[0] == "lit" else None


def slug(text):
    text = re.sub(r"([a-z0-9])([A-Z])", r"\1-\2", text)
    return re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-")


def finds(value, test):
    """Whether any object or scalar inside passes the test."""
    if test(value):
        return True
    if isinstance(value, dict):
        return any(finds(v, test) for v in value.values())
    if isinstance(value, list):
        return any(finds(v, test) for v in value)
    return False


def has(value, **want):
    return finds(value, lambda v: isinstance(v, dict) and all(k in v and (w is ANY or v[k] == w) for k, w in want.items()))


# ---------------------------------------------------------------------------------------------------------------------
# Meaningful values

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
PDF = "JVBERi0xLjEKMSAwIG9iajw8L1R5cGUvQ2F0YWxvZy9QYWdlcyAyIDAgUj4+ZW5kb2JqCjIgMCBvYmo8PC9UeXBlL1BhZ2VzL0tpZHNbMyAwIFJdL0NvdW50IDE+PmVuZG9iagozIDAgb2JqPDwvVHlwZS9QYWdlL1BhcmVudCAyIDAgUi9NZWRpYUJveFswIDAgOSA5XT4+ZW5kb2JqCnRyYWlsZXI8PC9Sb290IDEgMCBSPj4K"
WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="
SIGNATURE = "EqQBCkYIBxgCKkDk3oXSd1TwQ8rdzsNPQ0pZbq8x4e9TnWyHkq0mJcVwLxhk1m5e3pC0f7o2gq1lSxkYxgYvPwz1ZbW5b0Jt"
CITY = {
    "type": "object",
    "properties": {"city": {"type": "string", "description": "City and country, such as Oslo, Norway"}},
    "required": ["city"],
    "additionalProperties": False,
}
RICH = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "minLength": 1},
        "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
        "days": {"type": "integer", "minimum": 1, "maximum": 14},
        "fields": {"type": "array", "items": {"$ref": "#/$defs/field"}},
        "when": {"anyOf": [{"type": "string", "format": "date-time"}, {"type": "null"}]},
    },
    "required": ["city"],
    "additionalProperties": False,
    "$defs": {"field": {"type": "string", "enum": ["wind", "rain", "sun"]}},
}
ANSWER = {
    "type": "object",
    "properties": {"answer": {"type": "string"}, "sure": {"type": "boolean"}},
    "required": ["answer", "sure"],
    "additionalProperties": False,
}


def body(wire, name, source, b, provider=None, beta=None):
    out = {"name": name, "wire": wire, "source": source, "seen": SEEN}
    if provider:
        out["provider"] = provider
    if beta:
        out["beta"] = beta
    return out | {"body": b}


# ---------------------------------------------------------------------------------------------------------------------
# Anthropic

A = "anthropic-messages"
A_TOOL = {"name": "get_weather", "description": "Current weather of a city.", "input_schema": CITY}
A_VALUES = {
    # names, ids, links
    "CacheControlEphemeral.ttl": ["5m", "1h"],
    "title": ["Annual report"],
    "context": ["Published in March 2026."],
    "url": ["https://example.com/report"],
    "URLPDFSource.url": ["https://example.com/report.pdf"],
    "URLImageSource.url": ["https://example.com/chart.png"],
    "file_id": ["file_011CNha8iCJcU1wXNR6q4V8w"],
    "signature": [SIGNATURE],
    "ThinkingBlock.thinking": ["The user wants the weather; I need the tool.", ""],
    "RedactedThinkingBlock.data": ["EmwKAhgBEgy3va3pzix/LafPsn4aDFIT2Xlxh0L5L8rLVyIwxtE3rAFBa8cr3qpPkNRj2YfWXGmKDxH4mPnZ5sQ7vB9mN3"],
    "PlainTextSource.data": ["Oslo is the capital of Norway."],
    "Base64PDFSource.data": [PDF],
    "Base64ImageSource.data": [PNG],
    "text": ["What is the weather in Oslo?"],
    "SearchResultBlock.source": ["https://example.com/docs/weather"], "CitationSearchResultLocation.source": ["https://example.com/docs/weather"],
    "tool_name": ["get_weather"],
    "tool_use_id": ["toolu_01D7FLrfh4GYq7yT1ULFeyMV"],
    "ToolUseBlock.id": ["toolu_01D7FLrfh4GYq7yT1ULFeyMV"],
    "ToolUseBlock.name": ["get_weather"],
    "ToolUseBlock.input": [{"city": "Oslo, Norway"}],
    "ServerToolUseBlock.id": ["srvtoolu_01WYG3ziw53XMcoyKL4XcZmE"],
    "ServerToolUseBlock.input": [{"query": "weather Oslo"}],
    "ServerToolCaller.tool_id": ["srvtoolu_01ABC4567890defGHIjklMNo"],
    "ServerToolCaller20260120.tool_id": ["srvtoolu_01ABC4567890defGHIjklMNo"],
    "encrypted_content": ["EqgfCioIARgBIiQ3YTAwMjY1Mi1mZjM5LTQ1NGUtODgxNC1kNjNjNTk1ZWI3Y5"],
    "encrypted_index": ["Eo8BCioIAhgBIiQyYjQ0OWJmZi1lNm"],
    "encrypted_stdout": ["EqgfCioIARgBIiQ3YTAwMjY1"],
    "page_age": ["April 30, 2026"],
    "retrieved_at": ["2026-11-20T10:00:00Z"],
    "cited_text": ["Oslo is the capital of Norway."],
    "document_title": ["Geography"],
    "stdout": ["42\n"],
    "stderr": [""],
    "return_code": [0],
    "error_message": ["No such file"],
    "stop_reason": ["end_turn"],
    "document_index": [0],
    "search_result_index": [0],
    "start_char_index": [0],
    "end_char_index": [30],
    "start_page_number": [1],
    "end_page_number": [2],
    "start_block_index": [0],
    "end_block_index": [1],
    "lines": [["-old", "+new"]],
    # requests
    "input_schema": [CITY, RICH],
    "MCPToolParam.input_schema": [CITY],
    "MCPToolParam.name": ["create_event"],
    "description": ["Current weather of a city."],
    "ToolParam.name": ["get_weather"],
    "Tool.name": ["get_weather"],
    "input_examples": [[{"city": "Oslo, Norway"}]],
    "ToolBash20250124.input_examples": [[{"command": "ls -la"}]],
    "MemoryTool20250818.input_examples": [[{"command": "view", "path": "/memories"}]],
    "ToolTextEditor20250728.input_examples": [[{"command": "view", "path": "/repo/main.py"}]],
    "ToolTextEditor20250429.input_examples": [[{"command": "view", "path": "/repo/main.py"}]],
    "ToolComputerUse20251124.input_examples": [[{"action": "screenshot"}]],
    "ToolComputerUse20250124.input_examples": [[{"action": "screenshot"}]],
    "display_width_px": [1280],
    "display_height_px": [800],
    "display_number": [1],
    "allowed_callers": [["direct"]],
    "ToolParam.allowed_callers": [["direct"], ["code_execution_20250825"], ["code_execution_20260120"], ["direct", "code_execution_20260120"]],
    "strict": [False],
    "Tool.strict": [True, False],
    "allowed_domains": [["example.com", "docs.example.org/api"]],
    "blocked_domains": [["untrusted.example"]],
    "max_uses": [5],
    "max_content_tokens": [50000],
    "max_characters": [10000],
    "AdvisorTool20260301.max_tokens": [2048],
    "AdvisorTool20260301.model": ["claude-opus-4-8"],
    "city": ["Oslo"],
    "region": ["Oslo"],
    "country": ["NO"],
    "timezone": ["Europe/Oslo"],
    "mcp_server_name": ["calendar"],
    "server_name": ["calendar"],
    "MCPToolset.configs": [{"create_event": {"enabled": True}}, {"create_event": {"defer_loading": True}, "delete_event": {"enabled": False}}],
    "ToolSearchToolBm25_20251119.type": ["tool_search_tool_bm25_20251119"],
    "ToolSearchToolRegex20251119.type": ["tool_search_tool_regex_20251119"],
    "ToolChangeToolReference.name": ["get_weather"],
    "ToolChangeMCPToolReference.name": ["create_event"],
    "WebFetchURLSourceToolReference.name": ["web_search"],
    "tool_references": [[{"type": "tool_reference", "tool_name": "get_weather"}]],
    "tabs": [[{"tab_id": "tab-1", "title": "Docs", "url": "https://example.com/docs", "active": True}], [], [
        {"tab_id": "tab-1", "title": "Docs", "url": "https://example.com/docs"},
        {"tab_id": "tab-2", "title": "", "url": "about:blank", "active": True},
    ]],
    "tab_id": ["tab-1"],
    "download_id": ["dl-1"],
    "path": ["/downloads/report.pdf"],
    "size_bytes": [1024],
    "error": ["Connection reset"],
    "skills": [
        [{"type": "anthropic", "skill_id": "xlsx", "version": "latest"}],
        [{"type": "anthropic", "skill_id": "pptx"}, {"type": "custom", "skill_id": "skill_01AbCdEfGhIjKlMnOpQrStUv", "version": "1759178010641129"}],
    ],
    "Container.id": ["container_011CPR5CNjB747bTd36fQLFk"],
    "user_id": ["13803d75-b4b5-4c3e-b2a2-6f21399b021b"],
    "inference_geo": ["us"],
    "stop_sequences": [["\n\nHuman:", "END"]],
    "previous_message_id": ["msg_01XFDUDYJgAACzvnptvVoYEL"],
    "fallback_credit_token": ["fct_01AbCdEf", {"token": "fct_01AbCdEf"}, {"token": "fct_01AbCdEf", "mode": "strict"}, {"token": "fct_01AbCdEf", "mode": "best_effort"}],
    "Fallback.model": ["claude-opus-4-8"],
    "FallbackInfo.model": ["claude-opus-4-8"],
    "Fallback.max_tokens": [2048],
    "FallbackBlock.trigger": [{"type": "refusal", "category": "cyber"}, {"type": "refusal", "category": None}],
    "from": [{"model": "claude-fable-5-1"}],
    "schema": [ANSWER],
    "total": [64000],
    "remaining": [40000],
    "budget_tokens": [2048],
    "exclude_tools": [["web_search"]],
    "clear_tool_inputs": [True, False, ["get_weather"]],
    "InputTokensTrigger.value": [100000],
    "InputTokensClearAtLeast.value": [5000],
    "ToolUsesTrigger.value": [10],
    "instructions": ["Keep decisions and open questions."], "CompactionBlock.content": ["The user plans a trip to Oslo."],
    "MCPToolUseBlock.id": ["mcptoolu_014Q35RayjACSWkSj4X2yov1"],
    "MCPToolUseBlock.input": [{"title": "Review"}],
    "MCPToolUseBlock.name": ["create_event"],
    "RequestMCPServerURLDefinition.name": ["calendar"],
    "RequestMCPServerURLDefinition.url": ["https://mcp.example.com/sse"],
    "authorization_token": ["YOUR_TOKEN"],
    "allowed_tools": [["create_event"]],
}
A_HIDE = {
    "ToolUseBlock.toolset_name", "ToolResultBlock.toolset_name",
    # deferred members must be deferred together; toolset members are handled below
    ".betas", ".user_profile_id", ".workspace_id",
}
A_MODEL = {
    "computer_20251124": "claude-opus-4-6", "computer_20250124": "claude-sonnet-4-5", "text_editor_20250429": "claude-sonnet-4-5",
    "advisor_20260301": "claude-sonnet-4-6", "browser_toolset_20260801": "claude-opus-5", "computer_toolset_20260801": "claude-opus-5",
}
# Current models reject these, or it is not known which ones accept them.
A_RETIRED = {"computer_20241022", "bash_20241022", "text_editor_20241022", "text_editor_20250124"}
A_RESULT_OF = {
    "web_search_tool_result": "web_search", "web_fetch_tool_result": "web_fetch", "advisor_tool_result": "advisor",
    "code_execution_tool_result": "code_execution", "bash_code_execution_tool_result": "bash_code_execution",
    "text_editor_code_execution_tool_result": "text_editor_code_execution", "tool_search_tool_result": "tool_search_tool_regex",
}
A_SERVER = {  # server tool -> (declaration, input)
    "web_search": ({"type": "web_search_20260209", "name": "web_search"}, {"query": "weather Oslo"}),
    "web_fetch": ({"type": "web_fetch_20260209", "name": "web_fetch"}, {"url": "https://example.com/report"}),
    "advisor": ({"type": "advisor_20260301", "name": "advisor", "model": "claude-opus-4-8"}, {}),
    "code_execution": ({"type": "code_execution_20260120", "name": "code_execution"}, {"code": "print(6 * 7)"}),
    "bash_code_execution": ({"type": "code_execution_20250825", "name": "code_execution"}, {"command": "ls"}),
    "text_editor_code_execution": ({"type": "code_execution_20250825", "name": "code_execution"}, {"command": "view", "path": "data.csv"}),
    "tool_search_tool_regex": ({"type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex"}, {"pattern": "weather"}),
    "tool_search_tool_bm25": ({"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}, {"query": "weather"}),
}
A_SERVER_RESULT = {
    "web_search": ("web_search_tool_result", [{"type": "web_search_result", "title": "Oslo", "url": "https://example.com/oslo", "encrypted_content": "EqgfCioIARgB"}]),
    "web_fetch": ("web_fetch_tool_result", {"type": "web_fetch_result", "url": "https://example.com/report", "content": {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "Sunny."}}}),
    "advisor": ("advisor_tool_result", {"type": "advisor_result", "text": "Look at the forecast first."}),
    "code_execution": ("code_execution_tool_result", {"type": "code_execution_result", "stdout": "42\n", "stderr": "", "return_code": 0, "content": []}),
    "bash_code_execution": ("bash_code_execution_tool_result", {"type": "bash_code_execution_result", "stdout": "a.txt\n", "stderr": "", "return_code": 0, "content": []}),
    "text_editor_code_execution": ("text_editor_code_execution_tool_result", {"type": "text_editor_code_execution_view_result", "file_type": "text", "content": "a,b\n"}),
    "tool_search_tool_regex": ("tool_search_tool_result", {"type": "tool_search_tool_search_result", "tool_references": [{"type": "tool_reference", "tool_name": "get_weather"}]}),
    "tool_search_tool_bm25": ("tool_search_tool_result", {"type": "tool_search_tool_search_result", "tool_references": [{"type": "tool_reference", "tool_name": "get_weather"}]}),
}
ASK = {"role": "user", "content": "What is the weather in Oslo?"}
CALENDAR = {"type": "url", "name": "calendar", "url": "https://mcp.example.com/sse"}


def a_base(**more):
    return {"model": "claude-opus-4-8", "max_tokens": 4096, "messages": [copy.deepcopy(ASK)]} | more


def a_turn(content, tools=None, then="Thanks. And tomorrow?", **more):
    b = a_base(**more)
    b["messages"] += [{"role": "assistant", "content": content}, {"role": "user", "content": then}]
    if tools:
        b["tools"] = tools
    return b


def a_caller(value):
    c = value.get("caller")
    return c if isinstance(c, dict) and c["type"].startswith("code_execution") else None


def a_block(kind, value):
    """A block where it may stand, with what belongs to it; None if there is no such place."""
    if kind in ("text", "image", "document", "search_result"):
        if kind == "text" and value.get("citations"):
            cite = value["citations"][0]["type"]
            value = value | {"text": "Oslo is the capital of Norway."}
            if cite == "web_search_result_location":
                d, i = A_SERVER["web_search"]
                r, c = A_SERVER_RESULT["web_search"]
                return a_turn([{"type": "server_tool_use", "id": "srvtoolu_01", "name": "web_search", "input": i}, {"type": r, "tool_use_id": "srvtoolu_01", "content": c}, value], [d])
            b = a_turn([value])
            b["messages"][0] = {"role": "user", "content": [a_cited(cite), {"type": "text", "text": "What is the capital?"}]}
            return b
        b = a_base()
        b["messages"][0]["content"] = [value] if kind == "text" else [value, {"type": "text", "text": "What does this say?"}]
        return b
    if kind == "container_upload":
        b = a_base(tools=[A_SERVER["bash_code_execution"][0]])
        b["messages"][0]["content"] = [{"type": "text", "text": "Sum the table."}, value]
        return b
    if kind in ("thinking", "redacted_thinking"):
        b = a_turn([value, {"type": "text", "text": "It is sunny."}], thinking={"type": "adaptive"})
        return b
    if kind == "tool_use":
        b = a_base(tools=[copy.deepcopy(A_TOOL)])
        before = []
        caller = a_caller(value)
        if caller:
            before = [{"type": "server_tool_use", "id": caller["tool_id"], "name": "code_execution", "input": {"code": "print(await get_weather(city='Oslo, Norway'))"}}]
            b["tools"] = [{"type": caller["type"], "name": "code_execution"}, A_TOOL | {"allowed_callers": [caller["type"]]}]
            b["container"] = "container_011CPR5CNjB747bTd36fQLFk"
        b["messages"] += [
            {"role": "assistant", "content": [*before, value]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": value["id"], "content": "7 °C, rain"}]},
        ]
        return b
    if kind == "tool_result":
        use = {"type": "tool_use", "id": value["tool_use_id"], "name": "get_weather", "input": {"city": "Oslo, Norway"}}
        tools = [copy.deepcopy(A_TOOL)]
        if value.get("is_error") is True and not value.get("content"):
            value = value | {"content": "Error: no such city"}
        if has(value, type="browser_state"):
            use |= {"name": "new_tab", "input": {}, "toolset_name": "browser"}
            value = value | {"toolset_name": "browser"}
            tools = [{"type": "browser_toolset_20260801"}]
        if has(value, type="tool_reference"):
            use |= {"name": "find_tools", "input": {"query": "weather"}}
            tools = [
                {"name": "find_tools", "description": "Finds tools.", "input_schema": {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}},
                A_TOOL | {"defer_loading": True},
            ]
        b = a_base(tools=tools)
        if "toolset_name" in value:
            b["model"] = "claude-opus-5"
        b["messages"] += [{"role": "assistant", "content": [use]}, {"role": "user", "content": [value]}]
        return b
    if kind == "server_tool_use" or kind in A_RESULT_OF:
        name = value["name"] if kind == "server_tool_use" else A_RESULT_OF[kind]
        declared, given = A_SERVER[name]
        result, content = A_SERVER_RESULT[name]
        use = {"type": "server_tool_use", "id": "srvtoolu_01WYG3ziw53XMcoyKL4XcZmE", "name": name, "input": given}
        res = {"type": result, "tool_use_id": use["id"], "content": content}
        if kind == "server_tool_use":
            use = value | {"input": given}
            res["tool_use_id"] = use["id"]
        else:
            res = value | {"tool_use_id": use["id"]}
        blocks, tools = [use, res], [declared]
        caller = a_caller(value)
        if caller:
            if name not in ("web_search", "web_fetch") or caller["type"] == "code_execution_20250825":
                return None
            use["caller"] = res["caller"] = caller
            blocks = [
                {"type": "server_tool_use", "id": caller["tool_id"], "name": "code_execution", "input": {"code": "r = await web_search({'query': 'x'})"}},
                use, res,
                {"type": "code_execution_tool_result", "tool_use_id": caller["tool_id"], "content": A_SERVER_RESULT["code_execution"][1]},
            ]
        elif "caller" in value and name not in ("web_search", "web_fetch"):
            return None
        if name.startswith("tool_search"):
            tools = [declared, A_TOOL | {"defer_loading": True}]
        b = a_turn([*blocks, {"type": "text", "text": "Here is what I found."}], tools)
        if name == "advisor":
            b["model"] = "claude-sonnet-4-6"
        return b
    if kind in ("mcp_tool_use", "mcp_tool_result"):
        use = {"type": "mcp_tool_use", "id": "mcptoolu_014Q35RayjACSWkSj4X2yov1", "name": "create_event", "server_name": "calendar", "input": {"title": "Review"}}
        res = {"type": "mcp_tool_result", "tool_use_id": use["id"], "is_error": False, "content": [{"type": "text", "text": "Created."}]}
        if kind == "mcp_tool_use":
            use = value | {"server_name": "calendar"}
        else:
            res = value | {"tool_use_id": use["id"]}
            if has(res, citations=ANY):
                return None
        return a_turn([use, res, {"type": "text", "text": "Done."}], [{"type": "mcp_toolset", "mcp_server_name": "calendar"}], mcp_servers=[CALENDAR])
    if kind == "mcp_tool_listing":
        return a_turn([value, {"type": "text", "text": "You have no events."}], [{"type": "mcp_toolset", "mcp_server_name": "calendar"}], mcp_servers=[CALENDAR], model="claude-opus-5-5")
    if kind == "compaction":
        if value.get("content") is None:
            value = value | {"content": "The user plans a trip to Oslo."}
        if "encrypted_content" not in value and "signature" not in value:
            value = value | {"signature": SIGNATURE}
        b = a_base()
        b["messages"].insert(0, {"role": "assistant", "content": [value]})
        if value.get("tool_changes"):
            if has(value, type="tool_definition") or has(value["tool_changes"], server_name=ANY):
                return None
            b["tools"] = [copy.deepcopy(A_TOOL), {"type": "web_search_20260209", "name": "web_search"}]
            b["model"] = "claude-opus-5-5"
        return b
    if kind == "fallback":
        b = a_turn([value, {"type": "text", "text": "Here is the answer."}], model="claude-fable-5-1", fallbacks=[{"model": "claude-opus-4-8"}])
        return b
    if kind in ("tool_addition", "tool_removal"):
        return a_system({"role": "system", "content": [value]})
    return None


def a_cited(kind):
    if kind == "page_location":
        return {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": PDF}, "citations": {"enabled": True}}
    if kind == "content_block_location":
        return {"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": "Oslo is the capital of Norway."}]}, "citations": {"enabled": True}}
    if kind == "search_result_location":
        return {"type": "search_result", "source": "https://example.com/docs/weather", "title": "Norway", "content": [{"type": "text", "text": "Oslo is the capital of Norway."}], "citations": {"enabled": True}}
    return {"type": "document", "title": "Geography", "source": {"type": "text", "media_type": "text/plain", "data": "Oslo is the capital of Norway."}, "citations": {"enabled": True}}


def a_system(message):
    """A system message amid the conversation (platform.claude.com, build-with-claude/mid-conversation-system-messages)."""
    b = a_base(model="claude-opus-5-5")
    content = message.get("content")
    if has(content, type="text") and has(content, citations=ANY):
        return None
    change = [c for c in content if c["type"] in ("tool_addition", "tool_removal")] if isinstance(content, list) else []
    if change:
        tool = change[0]["tool"]
        b["tools"] = [copy.deepcopy(A_TOOL)]
        if tool["type"] == "tool_definition":
            d = tool["definition"]
            if d.get("type") not in (None, "custom", "mcp_toolset") and not str(d.get("type")).startswith(("web_search", "web_fetch")):
                return None
            if d.get("type") == "mcp_toolset":
                b["mcp_servers"] = [CALENDAR]
            elif d["name"] == "get_weather":
                b["tools"] = [A_TOOL | {"name": "get_time", "description": "Current time."}]
            if "cache_control" in change[0] and change[0]["cache_control"] and has(d, cache_control=ANY):
                return None
            if has(d, allowed_callers=ANY) or has(d, defer_loading=True) or has(d, strict=ANY):
                return None
        elif tool["type"] == "tool_reference":
            if change[0]["type"] == "tool_addition":
                b["tools"] = [{"type": "web_search_20260209", "name": "web_search"}, A_TOOL | {"defer_loading": True}]
        else:
            b["mcp_servers"] = [CALENDAR]
            deferred = {"default_config": {"defer_loading": True}} if change[0]["type"] == "tool_addition" else {}
            b["tools"].append({"type": "mcp_toolset", "mcp_server_name": "calendar"} | deferred)
    if message.get("output_config") and not content:
        b["messages"] += [{"role": "assistant", "content": "Rain, 7 °C."}, message, {"role": "user", "content": "And tomorrow?"}]
    else:
        b["messages"].append(message)
    return b


def a_tool(tag, v):
    if tag in A_RETIRED:
        return None
    b = a_base(tools=[v])
    b["model"] = A_MODEL.get(tag, b["model"])
    custom = tag in (None, "custom")
    for caller in v.get("allowed_callers") or []:
        if caller != "direct":
            b["tools"].insert(0, {"type": caller, "name": "code_execution"})
    if v.get("defer_loading") is True:
        if str(tag).startswith(("tool_search", "advisor", "code_execution")):
            return None
        b["tools"].insert(0, {"type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex"})
    if "strict" in v and str(tag).startswith("advisor"):
        return None
    if "url_sources" in v and has(v, type="tool_reference"):
        b["tools"].append({"type": "web_search_20260209", "name": "web_search"})
        if (v["url_sources"].get("client_tool_results") or {}).get("tools"):
            v["url_sources"]["client_tool_results"]["tools"] = [{"type": "tool_reference", "name": "get_weather"}]
            b["tools"].append(copy.deepcopy(A_TOOL))
    if tag == "mcp_toolset":
        b["mcp_servers"] = [CALENDAR]
        if has(v.get("configs") or {}, defer_loading=True) or has(v.get("default_config") or {}, defer_loading=True):
            b["tools"].insert(0, {"type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex"})
    if "toolset" in str(tag) and tag != "mcp_toolset" and has(v, defer_loading=True):
        return None
    if "input_examples" in v and has(v, name="get_weather") and v["input_schema"] != CITY:
        return None
    if custom and v.get("strict") is True:
        v["input_schema"] = CITY
    return b


def a_top(name, v):
    b = a_base()
    if v is None and name in ("fallback_credit_token",):
        return None
    b[name] = v
    if name == "thinking":
        kind = v["type"]
        b["max_tokens"] = 8192
        if kind == "enabled":
            if "block_binding" in v or v.get("display") == "updates":
                return None
            b["model"] = "claude-opus-4-6" if "display" in v else "claude-haiku-4-5"
        elif kind == "between_tools":
            b["model"] = "claude-sonnet-5-5"
        elif kind == "adaptive":
            b["model"] = "claude-fable-5-1" if "block_binding" in v or v.get("display") == "updates" else "claude-opus-4-8"
    elif name == "compaction" and v:
        b["messages"] += [{"role": "assistant", "content": "Rain, 7 °C."}, {"role": "user", "content": "And tomorrow?"}]
    elif name == "container" and v:
        b["tools"] = [{"type": "code_execution_20250825", "name": "code_execution"}]
    elif name == "context_management" and v:
        b["tools"] = [copy.deepcopy(A_TOOL)]
        if has(v, type="clear_tool_uses_20250919") and has(v, exclude_tools=ANY):
            b["tools"].append({"type": "web_search_20260209", "name": "web_search"})
        if has(v, type="clear_thinking_20251015"):
            b["thinking"] = {"type": "adaptive"}
    elif name in ("fallbacks",):
        b["model"] = "claude-fable-5-1"
        if isinstance(v, list):
            t = v[0].get("thinking") or {}
            if t.get("type") in ("enabled", "between_tools") or "block_binding" in t or has(v, speed="fast"):
                return None
    elif name == "fallback_credit_token":
        b["model"] = "claude-opus-4-8"
    elif name == "mcp_servers":
        if "tool_configuration" not in v[0]:
            b["tools"] = [{"type": "mcp_toolset", "mcp_server_name": "calendar"}]
    elif name == "system" and has(v, citations=ANY):
        return None
    elif name == "thread" and v and v["type"] == "continue":
        b["messages"] = [{"role": "user", "content": "And tomorrow?"}]
        b["model"] = "claude-sonnet-5"
    elif name == "thread":
        b["model"] = "claude-sonnet-5"
    elif name == "output_config":
        if has(v, task_budget=ANY):
            b["max_tokens"] = 16000
    return b


def a_betas(b):
    """The beta header values that a body needs."""
    out = []

    def when(test, *values):
        if test:
            out.extend(v for v in values if v not in out)

    tools = [t.get("type") or "" for t in b.get("tools", [])]
    msgs = b["messages"]
    listing = has(msgs, type="mcp_tool_listing") or any(t.get("type") == "mcp_toolset" and t.get("tools") for t in b.get("tools", []))
    inline = has(msgs, type="tool_definition")
    if any(s.get("tool_configuration") for s in b.get("mcp_servers", [])):
        out.append("mcp-client-2025-04-04")
    elif b.get("mcp_servers"):
        out.append("mcp-client-2026-09-15" if listing or inline else "mcp-client-2025-11-20")
    when(has(msgs, file_id=ANY) or has(msgs, type="container_upload"), "files-api-2025-04-14")
    when(has(b, file_id=ANY) and has(b, type="file"), "files-api-2025-04-14")
    cm = b.get("context_management")
    when(cm and has(cm, type="compact_20260112"), "compact-2026-01-12")
    when(cm is not None and "context_management" in b and not has(cm, type="compact_20260112"), "context-management-2025-06-27")
    comp = [blk for m in msgs if isinstance(m["content"], list) for blk in m["content"] if blk["type"] == "compaction"]
    when("compaction" in b or any("signature" in c for c in comp), "compact-2026-09-04")
    when(any("signature" not in c for c in comp), "compact-2026-01-12")
    when(isinstance(b.get("container"), dict) and b["container"].get("skills"), "code-execution-2025-08-25", "skills-2025-10-02")
    when(has(b, task_budget=ANY), "task-budgets-2026-03-13")
    when("fallbacks" in b or has(msgs, type="fallback"), "server-side-fallback-2026-07-01")
    when("fallback_credit_token" in b, "fallback-credit-2026-07-01")
    when("speed" in b or has(b.get("fallbacks"), speed=ANY), "fast-mode-2026-02-01")
    when("advisor_20260301" in tools, "advisor-tool-2026-03-01")
    when(any("clear_at" in m for m in msgs), "mid-conversation-system-clear-at-2026-08-21")
    when(any("output_config" in m for m in msgs), "mid-conversation-output-config-2026-07-01")
    change = any(has(m.get("content"), type=t) for m in msgs if m["role"] == "system" or has(m, type="compaction") for t in ("tool_addition", "tool_removal"))
    when(change, "inline-tools-2026-09-15")
    when(has(b, block_binding=ANY), "thinking-binding-controls-2026-08-01")
    when(has(b, display="updates"), "thinking-display-updates-2026-08-18")
    when("thread" in b, "message-threads-2026-08-12")
    when("billing_policy" in b, "user-profiles-billing-2026-10-01")
    when("diagnostics" in b, "cache-diagnosis-2026-04-07")
    when("computer_20251124" in tools, "computer-use-2025-11-24")
    when("computer_20250124" in tools, "computer-use-2025-01-24")
    return ",".join(out) or None


def a_wrong(b):
    """What the API refuses whatever the types say."""
    for m in b["messages"]:
        if isinstance(m["content"], list):
            for blk in m["content"]:
                if blk["type"] == "tool_result" and blk.get("is_error") and has(blk, type="browser_state"):
                    return True
                if m["role"] == "user" and blk["type"] == "text" and blk.get("citations"):
                    return True
    if has(b, type="document") and has(b["messages"], citations={"enabled": True}) and has(b, type="json_schema"):
        return True
    # citations of text blocks inside documents, search results and tool results
    nested = [c for m in b["messages"] if isinstance(m["content"], list) for blk in m["content"] for c in inner(blk)]
    if any(c.get("type") == "text" and "citations" in c for c in nested):
        return True
    # at most one cache mark inside the content of a document or tool result: marks belong on outer blocks
    return any(c.get("cache_control") for m in b["messages"] if isinstance(m["content"], list) for blk in m["content"]
               if blk["type"] not in ("tool_result", "search_result") for c in inner(blk) if c.get("type") in ("document",))


def inner(blk):
    for key in ("content", "source"):
        v = blk.get(key)
        for c in v if isinstance(v, list) else [v]:
            if isinstance(c, dict):
                yield c
                yield from inner(c)


def anthropic(depth, nulls=True):
    from anthropic.types.beta import message_create_params as p

    root = Reader().read(p.MessageCreateParamsBase)
    stable = set()
    from anthropic.types import message_create_params as q

    sroot = Reader().read(q.MessageCreateParamsBase)
    stable = set(sroot[2])
    w = Walk(A_VALUES, nulls, A_HIDE)
    src = "pkg:pypi/anthropic@2.12#types/beta/message_create_params.py "

    def give(name, b, what):
        if b is None or a_wrong(b):
            return
        beta = a_betas(b)
        yield body(A, slug(name), src + what, b, beta=beta)

    yield from give("base", a_base(), "MessageCreateParamsBase")
    yield from give("stream", a_base(stream=True), "MessageCreateParamsStreaming")
    skip = {"model", "messages", "max_tokens", "tools", "tool_choice", "betas", "user_profile_id", "workspace_id"}
    for f, (_, n) in root[2].items():
        if f in skip:
            continue
        for label, v in w.walk(n, depth, short(root[1]), f):
            yield from give(f"top {f} {label}", a_top(f, v), f"MessageCreateParamsBase.{f}")
    for label, v in w.walk(field(root, "tool_choice"), depth, "", "tool_choice"):
        if v["type"] == "tool":
            v["name"] = "get_weather"
        yield from give(f"tool_choice {label}", a_base(tools=[copy.deepcopy(A_TOOL)], tool_choice=v), "BetaToolChoiceParam")
    for n in members(field(root, "tools")):
        tag = tag_of(n)
        for label, v in w.walk(n, depth, short(n[1]), ""):
            yield from give(f"tool {short(n[1])} {label}", a_tool(tag, v), n[1])
    message = next(m for m in members(field(root, "messages")) if tag_of(m, "role") == "user")
    for n in members(field(message, "content")):
        kind = tag_of(n)
        for label, v in w.walk(n, depth, short(n[1]), ""):
            yield from give(f"block {short(n[1])} {label}", a_block(kind, v), n[1])
    system = next(m for m in members(field(root, "messages")) if tag_of(m, "role") == "system")
    for label, v in w.walk(system, depth, short(system[1]), ""):
        if "content" not in v:
            if v.get("output_config"):
                v = v | {"content": []}
            else:
                v = v | {"content": "From now on, answer in one sentence."}
        if v.get("content") == "text":
            v["content"] = "From now on, answer in one sentence."
        yield from give(f"system {label}", a_system(v), system[1])
    assert stable


# ---------------------------------------------------------------------------------------------------------------------
# OpenAI chat

C = "openai-chat"
C_TOOL = {"type": "function", "function": {"name": "get_weather", "description": "Current weather of a city.", "parameters": CITY}}
C_CALL = {"id": "call_abc123", "type": "function", "function": {"name": "get_weather", "arguments": "{\"city\": \"Oslo, Norway\"}"}}
C_CUSTOM = {"type": "custom", "custom": {"name": "run_sql", "description": "Runs SQL."}}
C_CUSTOM_CALL = {"id": "call_sql1", "type": "custom", "custom": {"name": "run_sql", "input": "SELECT 1"}}
C_VALUES = {
    "frequency_penalty": [0.5, -2, 2], "presence_penalty": [0.5, -2, 2], "temperature": [0.2, 0, 2], "top_p": [0.9, 1],
    "logit_bias": [{"50256": -100, "1734": 5}], "metadata": [{"ticket": "4711"}], "n": [2], "seed": [42],
    "max_tokens": [256], "max_completion_tokens": [2048], "top_logprobs": [5], "stop": ["END", ["END", "STOP"]],
    "prompt_cache_key": ["support-v3"], "safety_identifier": ["b2c9f0"], "user": ["user-1234"],
    "PromptCacheBreakpoint.ttl": ["30m"], "FilePromptCacheBreakpoint.ttl": ["30m"],
    "name": ["ada"], "FunctionDefinition.name": ["get_weather"], "Function.name": ["get_weather"],
    "Custom.name": ["run_sql"], "Custom.input": ["SELECT 1"], "Custom.description": ["Runs SQL."],
    "description": ["Current weather of a city."], "parameters": [CITY, RICH], "arguments": ["{\"city\": \"Oslo, Norway\"}"],
    "FunctionDefinition.strict": [True, False],
    "ImageURL.url": ["https://example.com/cat.png", "data:image/png;base64," + PNG],
    "InputAudio.data": [WAV], "FileFile.file_data": ["data:application/pdf;base64," + PDF], "filename": ["report.pdf"], "file_id": ["file-abc123"],
    "text": ["What is the weather in Oslo?"], "refusal": ["I cannot help with that."], "id": ["call_abc123"], "Audio.id": ["audio_abc123"],
    "VoiceID.id": ["voice_1234"], "tool_call_id": ["call_abc123"],
    "JSONSchema.name": ["answer"], "JSONSchema.schema": [ANSWER], "JSONSchema.strict": [True, False], "JSONSchema.description": ["The answer."],
    "definition": ["start: \"SELECT\" /.+/"], "Moderation.model": ["omni-moderation-latest"],
    "city": ["Oslo"], "region": ["Oslo"], "country": ["NO"], "timezone": ["Europe/Oslo"],
    "AllowedTools.tools": [[{"type": "function", "function": {"name": "get_weather"}}]],
    "modalities": [["text"], ["text", "audio"]],
}


def c_base(**more):
    return {"model": "gpt-4.1", "messages": [{"role": "user", "content": "What is the weather in Oslo?"}]} | more


def c_top(name, v):
    b = c_base()
    b[name] = v
    newer = {"prompt_cache_options", "verbosity", "moderation", "safety_identifier", "prompt_cache_key", "service_tier"}
    if name in newer:
        b["model"] = "gpt-5.6-terra"
    if name == "reasoning_effort":
        b["model"] = "gpt-5" if v == "minimal" else "gpt-5.6-sol"
    if name in ("audio",) and v or name == "modalities" and v and "audio" in v:
        b |= {"model": "gpt-audio-mini", "modalities": ["text", "audio"]}
        b.setdefault("audio", {"voice": "alloy", "format": "wav"})
    if name == "function_call":
        b["functions"] = [C_TOOL["function"]]
    if name == "top_logprobs" and v is not None:
        b["logprobs"] = True
    if name == "stream_options" and v is not None:
        b["stream"] = True
    if name == "parallel_tool_calls":
        b["tools"] = [C_TOOL]
    if name == "tool_choice":
        b["tools"] = [C_TOOL]
        if has(v, type="custom") or has(v, type="allowed_tools"):
            b["model"] = "gpt-5.2"
        if has(v, type="custom"):
            b["tools"] = [C_CUSTOM]
    if name == "tools" and has(v, type="custom"):
        b["model"] = "gpt-5.2"
    if name == "tools" and has(v, strict=True):
        v[0]["function"]["parameters"] = CITY
    if name == "web_search_options":
        b["model"] = "gpt-5-search-api"
    if name == "prompt_cache_retention" and v == "24h":
        b["model"] = "gpt-5.5"
    if name == "prediction" and v:
        b["messages"][0]["content"] = "Rename x to y:\nx = 1"
        v["content"] = v["content"] if isinstance(v["content"], list) else "y = 1"
    if name == "response_format" and v["type"] == "json_object":
        b["messages"][0]["content"] += " Answer in JSON."
    if name == "response_format" and v["type"] == "json_schema":
        v["json_schema"].setdefault("schema", ANSWER)
    return b


def c_message(role, v):
    b = c_base()
    if role in ("developer", "system"):
        b["messages"].insert(0, v)
        if role == "developer":
            b["model"] = "gpt-5.6-terra"
    elif role == "user":
        if isinstance(v["content"], list):
            part = v["content"][0]
            if part["type"] != "text":
                v["content"].append({"type": "text", "text": "What is this?"})
            if part["type"] == "input_audio":
                b["model"] = "gpt-audio-mini"
            if part["type"] == "file":
                f = part["file"]
                if "file_data" in f:
                    f["filename"] = "report.pdf"
                elif "file_id" not in f:
                    f["file_id"] = "file-abc123"
                if "filename" in f and "file_data" not in f:
                    return None
        b["messages"] = [v]
    elif role == "assistant":
        after = [{"role": "user", "content": "And tomorrow?"}]
        if v.get("tool_calls"):
            call = v["tool_calls"][0]
            after = [{"role": "tool", "tool_call_id": call["id"], "content": "7 °C, rain"}]
            b["tools"] = [C_CUSTOM if call["type"] == "custom" else C_TOOL]
            if call["type"] == "custom":
                b["model"] = "gpt-5.2"
            v.setdefault("content", None)
        elif v.get("function_call"):
            after = [{"role": "function", "name": "get_weather", "content": "7 °C, rain"}]
            b["functions"] = [C_TOOL["function"]]
            v.setdefault("content", None)
        elif v.get("audio"):
            b |= {"model": "gpt-audio-mini", "modalities": ["text", "audio"], "audio": {"voice": "alloy", "format": "wav"}}
        elif not v.get("content"):
            if v.get("refusal"):
                v.setdefault("content", None)
            else:
                v["content"] = "Rain, 7 °C."
        b["messages"] += [v, *after]
    elif role == "tool":
        b["tools"] = [C_TOOL]
        b["messages"] += [{"role": "assistant", "content": None, "tool_calls": [C_CALL]}, v]
    elif role == "function":
        if v.get("content") is None:
            v["content"] = "7 °C, rain"
        v["name"] = "get_weather"
        b["functions"] = [C_TOOL["function"]]
        b["messages"] += [{"role": "assistant", "content": None, "function_call": C_CALL["function"]}, v]
    if has(b["messages"], prompt_cache_breakpoint=ANY):
        b["model"] = "gpt-5.6-terra" if not has(b, type="input_audio") else b["model"]
        if has(b, type="input_audio") or "tools" in b:
            return None
    if has(b, detail="original"):
        b["model"] = "gpt-5.6-terra"
    return b


def openai_chat(depth, nulls=True):
    from openai.types.chat import completion_create_params as p

    root = Reader().read(p.CompletionCreateParamsBase)
    w = Walk(C_VALUES, nulls, {"Assistant.name", ".generate"})
    src = "pkg:pypi/openai@3.54#types/chat/completion_create_params.py "
    yield body(C, "base", src + "CompletionCreateParamsBase", c_base())
    yield body(C, "stream", src + "CompletionCreateParamsStreaming", c_base(stream=True))
    for f, (_, n) in root[2].items():
        if f in ("model", "messages"):
            continue
        for label, v in w.walk(n, depth, short(root[1]), f):
            yield body(C, slug(f"top {f} {label}"), src + f"CompletionCreateParamsBase.{f}", c_top(f, v))
    for n in members(field(root, "messages")):
        role = tag_of(n, "role")
        for label, v in w.walk(n, depth, short(n[1]), ""):
            b = c_message(role, v)
            if b:
                yield body(C, slug(f"message {role} {label}"), src + n[1], b)


# ---------------------------------------------------------------------------------------------------------------------
# OpenAI responses

R = "openai-responses"
R_TOOL = {"type": "function", "name": "get_weather", "description": "Current weather of a city.", "parameters": CITY, "strict": True}
R_VALUES = {
    "parameters": [CITY], "FunctionTool.parameters": [CITY, RICH], "strict": [False, True], "FunctionTool.strict": [True, False],
    "output_schema": [ANSWER], "description": ["Current weather of a city."],
    "FunctionTool.name": ["get_weather"], "ToolFunction.name": ["get_weather"], "CustomTool.name": ["run_sql"], "CustomTool.description": ["Runs SQL."],
    "FunctionToolCall.name": ["get_weather"], "arguments": ["{\"city\": \"Oslo, Norway\"}"],
    "ToolSearchCall.arguments": [{"query": "weather"}],
    "call_id": ["call_abc123"], "FunctionToolCall.id": ["fc_68af4030baa48193b0b43b4c2a176a1a"],
    "FunctionCallOutput.id": ["fco_68af4030baa48193"], "namespace": ["crm"], "caller_id": ["call_prog1"],
    "CustomToolCall.name": ["run_sql"], "CustomToolCall.input": ["SELECT 1"], "CustomToolCall.id": ["ctc_abc"], "CustomToolCallOutput.id": ["cto_abc"],
    **{f"{c}.text": ["What is the weather in Oslo?"] for c in ("InputText", "OutputText", "InputTextContent", "Result", "Summary", "ActionType", "Type")},
    "image_url": ["https://example.com/cat.png", "data:image/png;base64," + PNG],
    "file_id": ["file-abc123"], "file_data": ["data:application/pdf;base64," + PDF], "file_url": ["https://example.com/report.pdf"], "filename": ["report.pdf"],
    "OutputMessage.id": ["msg_68af40311e1c8193"], "OutputText.annotations": [[], [{"type": "url_citation", "start_index": 0, "end_index": 10, "title": "Oslo", "url": "https://example.com/oslo"}],
        [{"type": "file_citation", "file_id": "file-abc123", "filename": "report.pdf", "index": 3}],
        [{"type": "container_file_citation", "container_id": "cntr_1", "file_id": "cfile_1", "filename": "a.csv", "start_index": 0, "end_index": 5}],
        [{"type": "file_path", "file_id": "file-abc123", "index": 0}]],
    "logprobs": [[{"token": "Rain", "bytes": [82, 97, 105, 110], "logprob": -0.1, "top_logprobs": [{"token": "Rain", "bytes": [82, 97, 105, 110], "logprob": -0.1}]}]],
    "refusal": ["I cannot help with that."],
    "FileSearchToolCall.id": ["fs_68af"], "queries": [["weather Oslo"]], "attributes": [{"year": 2026, "lang": "en", "public": True}], "score": [0.9],
    "vector_store_ids": [["vs_abc123"]], "max_num_results": [10], "score_threshold": [0.5], "embedding_weight": [0.6], "text_weight": [0.4],
    "ComparisonFilter.key": ["year"], "ComparisonFilter.value": [2026], "CompoundFilter.filters": [[{"type": "eq", "key": "lang", "value": "en"}, {"type": "gte", "key": "year", "value": 2025}]],
    "ComputerToolCall.id": ["cu_68af"], "pending_safety_checks": [[], [{"id": "cu_sc_1", "code": "malicious_instructions", "message": "Check this."}]],
    "x": [100], "y": [200], "scroll_x": [0], "scroll_y": [300], "keys": [["CTRL", "A"]], "path": [[{"x": 1, "y": 2}, {"x": 3, "y": 4}]],
    "acknowledged_safety_checks": [[{"id": "cu_sc_1"}], [{"id": "cu_sc_1", "code": "malicious_instructions", "message": "Check this."}]],
    "ComputerCallOutput.id": ["cuo_1"], "FunctionWebSearch.id": ["ws_68af"], "url": ["https://example.com/oslo"], "pattern": ["rain"], "query": ["weather Oslo"],
    "sources": [[{"type": "url", "url": "https://example.com/oslo"}]],
    "display_width": [1024], "display_height": [768],
    "allowed_domains": [["example.com"]], "city": ["Oslo"], "region": ["Oslo"], "country": ["NO"], "timezone": ["Europe/Oslo"],
    "server_label": ["deepwiki"], "server_url": ["https://mcp.deepwiki.com/mcp"], "server_description": ["Documentation of repositories."], "authorization": ["TOKEN"],
    "headers": [{"X-Team": "docs"}], "tool_names": [["ask_question"]], "allowed_tools": [["ask_question"], {"tool_names": ["ask_question"]}, {"read_only": True}],
    "container": ["cntr_abc123", {"type": "auto"}, {"type": "auto", "file_ids": ["file-abc123"]}, {"type": "auto", "memory_limit": "4g"},
        {"type": "auto", "network_policy": {"type": "disabled"}}, {"type": "auto", "network_policy": {"type": "allowlist", "allowed_domains": ["pypi.org"]}}],
    "file_ids": [["file-abc123"]], "container_id": ["cntr_abc123"], "domain_secrets": [[{"domain": "example.com", "name": "KEY", "value": "secret"}]],
    "ContainerNetworkPolicyAllowlist.allowed_domains": [["pypi.org"]],
    "SkillReference.skill_id": ["skill_abc"], "SkillReference.version": ["2"], "InlineSkill.name": ["csv-insights"], "InlineSkill.description": ["Summarises CSV files."], "InlineSkillSource.data": ["UEsFBgAAAAAAAAAAAAAAAAAAAAAAAA=="],
    "LocalSkill.name": ["csv-insights"], "LocalSkill.description": ["Summarises CSV files."], "LocalSkill.path": ["/skills/csv"],
    "definition": ["start: \"SELECT\" /.+/"], "NamespaceTool.name": ["crm"], "NamespaceTool.description": ["Customer tools."],
    "ToolSearchOutputNamespaceTool.name": ["crm"], "ToolSearchOutputNamespaceTool.description": ["Customer tools."],
    "ToolSearchTool.description": ["Finds tools."],
    "frame_count": [4], "frame_duration_ms": [100], "output_compression": [80], "partial_images": [2], "size": ["1024x1024", "auto"],
    "Reasoning.mode": ["standard", "pro"], "ReasoningItem.id": ["rs_68af4030"], "ReasoningItem.summary": [[], [{"type": "summary_text", "text": "The user asks for weather."}]], "encrypted_content": ["gAAAAABoISQ24OyVRYbk"],
    "CompactionItem.id": ["cmp_1"], "ImageGenerationCall.id": ["ig_123"], "result": [PNG], "revised_prompt": ["A grey tabby cat."],
    "CodeInterpreterToolCall.id": ["ci_1"], "code": ["print(6 * 7)"], "outputs": [[{"type": "logs", "logs": "42\n"}], [{"type": "image", "url": "https://example.com/plot.png"}], []],
    "LocalShellCall.id": ["lsh_1"], "command": [["ls", "-la"]], "env": [{"LANG": "C"}], "timeout_ms": [120000], "LocalShellCallAction.user": ["app"], "CreateParamsBase.user": ["user-1"], "working_directory": ["/repo"],
    "LocalShellCallOutput.id": ["call_abc123"], "commands": [["ls -la"]], "max_output_length": [4096], "stdout": ["a.txt\n"], "stderr": [""], "exit_code": [0],
    "diff": ["@@\n-old\n+new\n"], "ApplyPatchCallOperationCreateFile.path": ["a.py"], "ApplyPatchCallOperationDeleteFile.path": ["a.py"], "ApplyPatchCallOperationUpdateFile.path": ["a.py"],
    "ApplyPatchCallOutput.output": ["Applied."], "LocalShellCallOutput.output": ["a.txt\n"],
    "McpListTools.id": ["mcpl_1"], "McpListTools.tools": [[{"name": "ask_question", "input_schema": CITY}], [{"name": "ask_question", "input_schema": CITY, "description": "Asks.", "annotations": {"readOnlyHint": True}}]],
    "McpListTools.error": ["unreachable"], "McpApprovalRequest.id": ["mcpr_1"], "McpApprovalRequest.name": ["ask_question"], "approval_request_id": ["mcpr_1"], "reason": ["Not now."],
    "McpCall.id": ["mcp_1"], "McpCall.name": ["ask_question"], "McpCall.output": ["Answer."], "ItemReference.id": ["msg_68af40311e1c8193"],
    "Program.id": ["prog_1"], "Program.call_id": ["call_prog1"], "Program.code": ["const r = await tools.get_weather({city: 'Oslo'});"], "fingerprint": ["fp_1"],
    "ProgramOutput.id": ["po_1"], "ProgramOutput.call_id": ["call_prog1"], "ProgramOutput.result": ["{\"temp\": 7}"],
    # top level
    "CreateParamsBase.background": [True, False], "completion_window": ["soonest", "2h", "8h"], "continuation_id": ["job-7"],
    "context_management": [[{"type": "compaction"}], [{"type": "compaction", "compact_threshold": 200000}]],
    "conversation": ["conv_abc123", {"id": "conv_abc123"}], "instructions": ["Answer briefly."], "max_output_tokens": [2048], "max_tool_calls": [5],
    "metadata": [{"ticket": "4711"}], "Moderation.model": ["omni-moderation-latest"], "previous_response_id": ["resp_68af4030"], "comparison_response_id": ["resp_68af4030"],
    "prompt": [{"id": "pmpt_abc123"}, {"id": "pmpt_abc123", "version": "2"}, {"id": "pmpt_abc123", "variables": {"city": "Oslo"}},
        {"id": "pmpt_abc123", "variables": {"photo": {"type": "input_image", "detail": "auto", "file_id": "file-abc123"}, "doc": {"type": "input_file", "file_id": "file-abc123"}, "q": {"type": "input_text", "text": "Hi"}}}],
    "prompt_cache_key": ["support-v3"], "safety_identifier": ["b2c9f0"], "temperature": [0.2, 0, 2], "top_p": [0.9], "top_logprobs": [5],
    "Text.format": [{"type": "text"}, {"type": "json_schema", "name": "answer", "schema": ANSWER, "strict": True}],
    "FormatTextJSONSchemaConfig.name": ["answer"], "FormatTextJSONSchemaConfig.schema": [ANSWER], "FormatTextJSONSchemaConfig.description": ["The answer."], "FormatTextJSONSchemaConfig.strict": [True, False],
    "ToolChoiceAllowed.tools": [[{"type": "function", "name": "get_weather"}], [{"type": "function", "name": "get_weather"}, {"type": "web_search"}]],
    "ToolChoiceFunction.name": ["get_weather"], "ToolChoiceCustom.name": ["run_sql"], "ToolChoiceMcp.name": ["ask_question"],
}
R_HIDE = {
    "ReasoningItem.status", "ReasoningItem.content",  # listed, and refused (BerriAI/litellm#13420, decolua/9router#2497)
    "Reasoning.generate_summary", ".tunnel_id", ".svg_usage", ".error_", "ImageGenerationCall.error", "McpCall.error",
    "ComputerToolCall.actions_", "Message.status_",
}
R_TOOLS = {
    "file_search": {"type": "file_search", "vector_store_ids": ["vs_abc123"]}, "web_search": {"type": "web_search"},
    "computer": {"type": "computer"}, "computer_use_preview": {"type": "computer_use_preview", "display_width": 1024, "display_height": 768, "environment": "browser"},
    "image_generation": {"type": "image_generation"}, "code_interpreter": {"type": "code_interpreter", "container": {"type": "auto"}},
    "mcp": {"type": "mcp", "server_label": "deepwiki", "server_url": "https://mcp.deepwiki.com/mcp", "require_approval": "never"},
    "shell": {"type": "shell"}, "local_shell": {"type": "local_shell"}, "apply_patch": {"type": "apply_patch"},
    "custom": {"type": "custom", "name": "run_sql", "description": "Runs SQL."}, "programmatic_tool_calling": {"type": "programmatic_tool_calling"},
    "tool_search": {"type": "tool_search"}, "web_search_preview": {"type": "web_search_preview"},
}


def r_base(**more):
    return {"model": "gpt-5.6-sol", "input": "What is the weather in Oslo?"} | more


def r_user(text="What is the weather in Oslo?"):
    return {"role": "user", "content": text}


def r_top(name, v):
    b = r_base()
    b[name] = v
    if name in ("temperature", "top_p", "top_logprobs"):
        b["model"] = "gpt-4.1"
        if name == "top_logprobs" and v is not None:
            b["include"] = ["message.output_text.logprobs"]
    if name == "background_options":
        b["background"] = True
    if name == "background" and v:
        b["store"] = True
    if name == "stream_options" and v is not None:
        b["stream"] = True
    if name == "reasoning" and v:
        if v.get("effort") == "minimal":
            b["model"] = "gpt-5"
    if name in ("parallel_tool_calls",):
        b["tools"] = [R_TOOL]
    if name == "max_tool_calls":
        b["tools"] = [R_TOOLS["web_search"]]
    if name == "prompt" and v:
        del b["input"]
        del b["model"]
    if name == "include" and v:
        what = v[0]
        if what.startswith("file_search"):
            b["tools"] = [R_TOOLS["file_search"]]
        elif what.startswith("web_search"):
            b["tools"] = [R_TOOLS["web_search"]]
        elif what.startswith("code_interpreter"):
            b["tools"] = [R_TOOLS["code_interpreter"]]
        elif what.startswith("computer"):
            b["tools"] = [R_TOOLS["computer"]]
        elif what.startswith("message.output_text"):
            b["model"] = "gpt-4.1"
    if name == "prompt_cache_options" and v.get("ttl") == "12h":
        b["model"] = "gpt-6.1-sol"
    if name == "prompt_cache_options" and "prewarm" in v:
        return None
    if name == "text" and v.get("format", {}).get("type") == "json_object":
        b["input"] += " Answer in JSON."
    if name == "access_programs":
        b["model"] = "gpt-5.6-sol" if v.get("cyber", "standard") == "standard" else "gpt-5.6-cyber"
    if name == "prompt_cache_retention":
        b["model"] = "gpt-5.5" if v == "24h" else "gpt-4.1"
    if name == "service_tier" and v == "scale":
        b["model"] = "gpt-4.1"
    if name == "image" and v:
        b["input"] = [{"role": "user", "content": [{"type": "input_image", "detail": "auto", "image_url": "https://example.com/cat.png"}]}]
    return b


def r_tool(kind, v):
    b = r_base(tools=[v])
    if v.get("allowed_callers") and "programmatic" in v["allowed_callers"]:
        b["tools"].append(R_TOOLS["programmatic_tool_calling"])
        if v.get("async"):
            return None
    if v.get("defer_loading") is True:
        b["tools"].append(R_TOOLS["tool_search"])
    if kind == "tool_search":
        if v.get("execution") == "client" or "parameters" in v:
            v |= {"execution": "client", "description": "Finds tools.", "parameters": {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"], "additionalProperties": False}}
        elif "description" in v:
            return None
        b["tools"].append(R_TOOL | {"defer_loading": True})
    if kind == "programmatic_tool_calling":
        b["tools"].append(R_TOOL | {"allowed_callers": ["programmatic"]})
    if kind == "mcp":
        if "connector_id" in v:
            v |= {"authorization": "ya29.TOKEN"}
        else:
            v.setdefault("server_url", "https://mcp.deepwiki.com/mcp")
    if kind == "computer_use_preview":
        b |= {"model": "computer-use-preview", "truncation": "auto"}
    if kind == "local_shell":
        b["model"] = "codex-mini-latest"
        return None  # the only model that took it is gone
    if kind == "image_generation":
        if "frame_count" in v or "frame_duration_ms" in v or "svg" in v or v.get("output_format") in ("gif", "svg") or "complexity" in v:
            return None  # which model takes them is not sure
        if "input_image_mask" in v:
            if len(v["input_image_mask"]) != 1:
                return None
            b["input"] = [{"role": "user", "content": [{"type": "input_text", "text": "Edit it."}, {"type": "input_image", "detail": "auto", "file_id": "file-abc123"}]}]
        if "output_compression" in v:
            v["output_format"] = "jpeg"
        if v.get("quality") in ("xhigh", "max"):
            return None
        if v.get("background") == "transparent":
            v["model"] = "gpt-image-1.5"
        if "input_fidelity" in v:
            v["model"] = "gpt-image-1"
    if kind == "function" and v.get("parameters") is RICH or v.get("parameters") == RICH:
        v["strict"] = False
    if kind == "file_search" and has(v, hybrid_search=ANY):
        v["ranking_options"].setdefault("ranker", "auto")
    if kind in ("web_search_preview", "web_search_preview_2025_03_11"):
        b["model"] = "gpt-4.1"
    return b


def r_choice(v):
    b = r_base(tools=[R_TOOL], tool_choice=v)
    if isinstance(v, dict):
        t = v["type"]
        if t in R_TOOLS:
            b["tools"] = [R_TOOLS[t]]
        if t.startswith("web_search_preview"):
            b |= {"tools": [{"type": t}], "model": "gpt-4.1"}
        if t == "computer_use_preview":
            b |= {"model": "computer-use-preview", "truncation": "auto"}
        if t == "computer_use":
            return None
        if t == "allowed_tools" and len(v["tools"]) > 1:
            b["tools"] = [R_TOOL, R_TOOLS["web_search"]]
        if t == "programmatic_tool_calling":
            b["tools"].append(R_TOOL | {"allowed_callers": ["programmatic"]})
    return b


PROGRAM = {"type": "program", "id": "prog_1", "call_id": "call_prog1", "code": "const r = await tools.get_weather({city: 'Oslo'});", "fingerprint": "fp_1"}
PROGRAM_OUT = {"type": "program_output", "id": "po_1", "call_id": "call_prog1", "result": "{\"temp\": 7}", "status": "completed"}


def r_item(kind, v):
    b = r_base()
    u = [r_user()]
    then = [r_user("And tomorrow?")]
    call = {"type": "function_call", "call_id": "call_abc123", "name": "get_weather", "arguments": "{\"city\": \"Oslo, Norway\"}"}
    out = {"type": "function_call_output", "call_id": "call_abc123", "output": "7 °C, rain"}
    prog = has(v, type="program", caller_id=ANY)
    if kind == "easy":
        if isinstance(v["content"], list):
            if v["role"] == "assistant":
                return None  # the server takes output_text there
            if v["role"] in ("system", "developer") and not has(v, type="input_text"):
                return None
            if not r_media(v["content"][0]):
                return None
        if "phase" in v:
            v |= {"role": "assistant", "content": "I will look it up."}
            b["input"] = [*u, v, *then]
        elif v["role"] == "user":
            b["input"] = [v]
        elif v["role"] == "assistant":
            b["input"] = [*u, v, *then]
        else:
            b["input"] = [v, *u]
    elif kind == "message":
        if "content" in v and not r_media(v["content"][0]):
            return None
        if v["role"] != "user" and not has(v, type="input_text"):
            return None
        v["type"] = "message"
        b["input"] = [v] if v["role"] == "user" else [v, *u]
    elif kind == "output":
        b["input"] = [*u, v, *then]
    elif kind == "function_call":
        b["tools"] = [R_TOOL]
        if v.get("namespace"):
            b["tools"] = [{"type": "namespace", "name": "crm", "description": "Customer tools.", "tools": [R_TOOL]}]
        if "async" in v:
            b["tools"] = [R_TOOL | {"async": v["async"]}]
        b["input"] = [*u, v, out | {k: v[k] for k in ("caller", "namespace") if k in v and v[k]}]
        if prog:
            b["tools"] = [R_TOOLS["programmatic_tool_calling"], R_TOOL | {"allowed_callers": ["programmatic"]}]
            b["input"] = [*u, PROGRAM, v, out | {"caller": v["caller"]}]
    elif kind == "function_call_output":
        if isinstance(v.get("output"), list) and not r_media(v["output"][0]):
            return None
        if v.get("name") or v.get("namespace") or v.get("call_id") is None and "call_id" in v:
            return None
        v["call_id"] = "call_abc123"
        b["tools"] = [R_TOOL]
        b["input"] = [*u, call, v]
        if v.get("caller"):
            call |= {"caller": v["caller"]}
        if prog:
            b["tools"] = [R_TOOLS["programmatic_tool_calling"], R_TOOL | {"allowed_callers": ["programmatic"]}]
            b["input"] = [*u, PROGRAM, call, v]
    elif kind in ("custom_tool_call", "custom_tool_call_output"):
        ccall = {"type": "custom_tool_call", "call_id": "call_abc123", "name": "run_sql", "input": "SELECT 1"}
        cout = {"type": "custom_tool_call_output", "call_id": "call_abc123", "output": "1"}
        if prog or v.get("namespace"):
            return None
        if kind.endswith("output"):
            if isinstance(v["output"], list) and not r_media(v["output"][0]):
                return None
            cout = v
        else:
            ccall = v
            if "async" in v:
                return None
        b["tools"] = [R_TOOLS["custom"]]
        b["input"] = [*u, ccall, cout]
    elif kind == "reasoning":
        b["input"] = [*u, v, {"role": "assistant", "content": "Rain, 7 °C."}, *then]
        b["store"] = False
        b["include"] = ["reasoning.encrypted_content"]
        v.setdefault("encrypted_content", "gAAAAABoISQ24OyVRYbk")
        if v["encrypted_content"] is None:
            return None
    elif kind == "file_search_call":
        b["tools"] = [R_TOOLS["file_search"]]
        b["input"] = [*u, v, {"role": "assistant", "content": "Rain."}, *then]
    elif kind == "web_search_call":
        b["tools"] = [R_TOOLS["web_search"]]
        if v["action"]["type"] == "search":
            v["action"].setdefault("query", "weather Oslo")
        if v["action"].get("url", "") is None:
            return None
        b["input"] = [*u, v, {"role": "assistant", "content": "Rain."}, *then]
    elif kind in ("computer_call", "computer_call_output"):
        ccall = {"type": "computer_call", "id": "cu_68af", "call_id": "call_abc123", "status": "completed", "pending_safety_checks": [], "actions": [{"type": "screenshot"}]}
        cout = {"type": "computer_call_output", "call_id": "call_abc123", "output": {"type": "computer_screenshot", "image_url": "data:image/png;base64," + PNG}}
        b["tools"] = [R_TOOLS["computer"]]
        if kind.endswith("output"):
            if not has(v, image_url=ANY) and not has(v, file_id=ANY):
                v["output"]["image_url"] = "data:image/png;base64," + PNG
            if v.get("acknowledged_safety_checks"):
                ccall["pending_safety_checks"] = [{"id": "cu_sc_1", "code": "malicious_instructions", "message": "Check this."}]
            cout = v
        else:
            if "action" in v:
                b |= {"model": "computer-use-preview", "truncation": "auto", "tools": [R_TOOLS["computer_use_preview"]]}
            elif "actions" not in v:
                v["actions"] = [{"type": "screenshot"}]
            if v["pending_safety_checks"]:
                cout["acknowledged_safety_checks"] = v["pending_safety_checks"]
            ccall = v
        b["input"] = [*u, ccall, cout]
    elif kind in ("tool_search_call", "tool_search_output"):
        client = v.get("execution") == "client"
        tcall = {"type": "tool_search_call", "call_id": "call_ts1", "execution": "client", "status": "completed", "arguments": {"query": "weather"}}
        tout = {"type": "tool_search_output", "call_id": "call_ts1", "execution": "client", "status": "completed", "tools": [R_TOOL | {"defer_loading": True}]}
        if not client and ("execution" in v or v.get("call_id") is None and "call_id" in v):
            return None
        if kind.endswith("call"):
            tcall |= v | {"call_id": "call_ts1"}
        else:
            if not all(t["type"] in ("function", "namespace", "custom", "mcp") for t in v["tools"]):
                return None
            if has(v, async_=ANY) or has(v["tools"], allowed_callers=ANY) or has(v["tools"], authorization=ANY):
                return None
            tout |= v | {"call_id": "call_ts1"}
            for t in tout["tools"]:
                if t["type"] == "mcp":
                    t |= {"server_url": "https://mcp.deepwiki.com/mcp"}
                if t["type"] in ("function",):
                    t["defer_loading"] = True
        b["tools"] = [{"type": "tool_search", "execution": "client", "description": "Finds tools.", "parameters": {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"], "additionalProperties": False}}]
        b["input"] = [*u, tcall, tout]
    elif kind == "additional_tools":
        if not all(t["type"] in ("function", "custom", "web_search") for t in v["tools"]) or has(v, allowed_callers=ANY) or has(v, defer_loading=ANY):
            return None
        b["input"] = [v, *u]
    elif kind == "configuration_update":
        if not (v.get("reasoning") or {}).get("effort"):
            return None
        b |= {"model": "gpt-6-astra", "reasoning": {"effort": "low"}}
        if "text" in v or v["reasoning"]["effort"] in ("none", "minimal"):
            return None
        b["input"] = [*u, {"role": "assistant", "content": "Rain."}, v, *then]
    elif kind == "compaction":
        b["input"] = [v, *u]
    elif kind == "compaction_trigger":
        b["input"] = [*u, {"role": "assistant", "content": "Rain."}, *then, v]
    elif kind == "image_generation_call":
        if v.get("output_format") in ("gif", "svg") or v.get("quality") in ("xhigh", "max") or v.get("result") is None or v.get("status") != "completed":
            return None
        b["tools"] = [R_TOOLS["image_generation"]]
        b["input"] = [r_user("Draw a cat."), v, r_user("Make it blue.")]
    elif kind == "code_interpreter_call":
        b["tools"] = [{"type": "code_interpreter", "container": "cntr_abc123"}]
        b["input"] = [*u, v, {"role": "assistant", "content": "42"}, *then]
    elif kind in ("shell_call", "shell_call_output"):
        scall = {"type": "shell_call", "call_id": "call_abc123", "action": {"commands": ["ls -la"]}, "status": "completed"}
        sout = {"type": "shell_call_output", "call_id": "call_abc123", "output": [{"stdout": "a.txt\n", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}]}
        if prog:
            return None
        if kind.endswith("output"):
            sout = v
            if v.get("max_output_length"):
                scall["action"]["max_output_length"] = v["max_output_length"]
        else:
            scall = v
            if has(v, type="container_reference"):
                return None
        b["tools"] = [{"type": "shell", "environment": {"type": "local"}}]
        b["input"] = [*u, scall, sout]
    elif kind in ("apply_patch_call", "apply_patch_call_output"):
        if prog:
            return None
        pcall = {"type": "apply_patch_call", "call_id": "call_abc123", "status": "completed", "operation": {"type": "update_file", "path": "a.py", "diff": "@@\n-old\n+new\n"}}
        pout = {"type": "apply_patch_call_output", "call_id": "call_abc123", "status": "completed", "output": "Applied."}
        if kind.endswith("output"):
            pout = v
        else:
            pcall = v
        b["tools"] = [R_TOOLS["apply_patch"]]
        b["input"] = [*u, pcall, pout]
    elif kind in ("mcp_list_tools", "mcp_approval_request", "mcp_approval_response", "mcp_call"):
        listed = {"type": "mcp_list_tools", "id": "mcpl_1", "server_label": "deepwiki", "tools": [{"name": "ask_question", "input_schema": CITY}]}
        asked = {"type": "mcp_approval_request", "id": "mcpr_1", "server_label": "deepwiki", "name": "ask_question", "arguments": "{}"}
        b["tools"] = [R_TOOLS["mcp"] | ({"require_approval": "always"} if "approval" in kind else {})]
        if kind == "mcp_list_tools":
            b["input"] = [v, *u]
        elif kind == "mcp_approval_request":
            b["input"] = [*u, listed, v, {"type": "mcp_approval_response", "approval_request_id": v["id"], "approve": True}]
        elif kind == "mcp_approval_response":
            b["input"] = [*u, listed, asked, v]
        else:
            if v.get("approval_request_id"):
                return None
            v.setdefault("output", "Answer.")
            b["input"] = [*u, listed, v, {"role": "assistant", "content": "Done."}, *then]
    elif kind == "item_reference":
        b["input"] = [v | {"type": "item_reference"}, *then]
    elif kind in ("program", "program_output"):
        b["tools"] = [R_TOOLS["programmatic_tool_calling"], R_TOOL | {"allowed_callers": ["programmatic"]}]
        c = {"type": "program", "caller_id": "call_prog1"}
        p, o = (v, PROGRAM_OUT) if kind == "program" else (PROGRAM, v)
        b["input"] = [*u, p, call | {"caller": c}, out | {"caller": c}, o, *then]
    else:
        return None
    if has(b["input"], prompt_cache_breakpoint=ANY):
        if has(b, prompt_cache_breakpoint={"mode": "explicit", "ttl": "12h"}):
            b["model"] = "gpt-6.1-sol"
    return b


def r_media(part):
    """An input part with exactly one source; False if it cannot be."""
    if part["type"] == "input_image":
        if part.get("file_id", 0) is None or part.get("image_url", 0) is None:
            return False
        if "file_id" not in part and "image_url" not in part:
            part["image_url"] = "https://example.com/cat.png"
    if part["type"] == "input_file":
        if any(part.get(k, 0) is None for k in ("file_id", "file_url", "file_data", "filename")):
            return False
        if "filename" in part or "file_data" in part:
            part.setdefault("file_data", "data:application/pdf;base64," + PDF)
            part.setdefault("filename", "report.pdf")
        elif not any(k in part for k in ("file_id", "file_url")):
            part["file_url"] = "https://example.com/report.pdf"
    return True


def openai_responses(depth, nulls=True):
    from openai.types.responses import response_create_params as p

    root = Reader().read(p.ResponseCreateParamsBase)
    w = Walk(R_VALUES, nulls, R_HIDE)
    src = "pkg:pypi/openai@3.54#types/responses/response_create_params.py "
    yield body(R, "base", src + "ResponseCreateParamsBase", r_base())
    yield body(R, "stream", src + "ResponseCreateParamsStreaming", r_base(stream=True))
    skip = {"model", "input", "tools", "tool_choice"}
    for f, (_, n) in root[2].items():
        if f in skip:
            continue
        for label, v in w.walk(n, depth, short(root[1]), f):
            b = r_top(f, v)
            if b:
                yield body(R, slug(f"top {f} {label}"), src + f"ResponseCreateParamsBase.{f}", b)
    for label, v in w.walk(field(root, "tool_choice"), depth, "", "tool_choice"):
        b = r_choice(v)
        if b:
            yield body(R, slug(f"tool_choice {label}"), src + "ToolChoice", b)
    seen = set()
    for n in members(field(root, "tools")):
        for label, v in w.walk(n, depth, short(n[1]), ""):
            b = r_tool(v["type"], v)
            if b:
                yield body(R, slug(f"tool {tag_of(n)} {label}"), src + n[1], b)
    for n in members(field(root, "input")):
        name = short(n[1])
        kind = {"EasyInputMessage": "easy", "Message": "message", "OutputMessage": "output", "ItemReference": "item_reference"}.get(name) or tag_of(n)
        if name in seen:
            continue
        seen.add(name)
        for label, v in w.walk(n, depth, name, ""):
            b = r_item(kind, v)
            if b:
                yield body(R, slug(f"item {kind} {label}"), src + n[1], b)


# ---------------------------------------------------------------------------------------------------------------------
# Google

G = "google-generate-content"
G_SCHEMA = {"type": "OBJECT", "properties": {"city": {"type": "STRING"}}, "required": ["city"]}
G_VALUES = {
    "mimeType": ["image/png"], "data": [PNG], "FileData.fileUri": ["https://generativelanguage.googleapis.com/v1beta/files/abc123"],
    "thoughtSignature": ["CpYBAVSoXO5"], "text": ["What is the weather in Oslo?"],
    "FunctionCall.name": ["get_weather"], "FunctionCall.args": [{"city": "Oslo"}], "FunctionCall.id": ["fc1"],
    "FunctionResponse.name": ["get_weather"], "FunctionResponse.response": [{"output": "7 °C, rain"}, {"error": "no such city"}], "FunctionResponse.id": ["fc1"],
    "code": ["print(6 * 7)"], "CodeExecutionResult.output": ["42\n"], "CodeExecutionResult.id": ["ce1"], "ExecutableCode.id": ["ce1"],
    "startOffset": ["10s"], "endOffset": ["20s"], "fps": [2.0], "numTokens": [256],
    "temperature": [0.2, 0, 2], "topP": [0.9], "topK": [40], "candidateCount": [1], "maxOutputTokens": [2048], "stopSequences": [["END"]],
    "presencePenalty": [0.5], "frequencyPenalty": [0.5], "seed": [42], "logprobs": [5], "responseMimeType": ["text/plain", "application/json", "text/x.enum"],
    "responseSchema": [{"type": "OBJECT", "properties": {"answer": {"type": "STRING"}}, "required": ["answer"]}], "responseJsonSchema": [ANSWER],
    "responseModalities": [["TEXT"], ["TEXT", "IMAGE"], ["AUDIO"]],
    "languageCode": ["en-US"], "voiceName": ["Kore"], "speaker": ["Anna"],
    "thinkingBudget": [1024, 0, -1], "thinkingConfig": [
        {"thinkingBudget": 1024}, {"thinkingBudget": -1}, {"thinkingBudget": 0}, {"includeThoughts": True}, {"includeThoughts": False},
        {"thinkingLevel": "LOW"}, {"thinkingLevel": "MEDIUM"}, {"thinkingLevel": "HIGH"}, {"thinkingLevel": "MINIMAL"}, {"thinkingLevel": "low"}, {"includeThoughts": True, "thinkingLevel": "high"}],
    "aspectRatio": ["16:9"], "imageSize": ["2K"], "cachedContent": ["cachedContents/abc123"],
    "FunctionDeclaration.name": ["get_weather"], "description": ["Current weather of a city."], "parameters": [G_SCHEMA], "parametersJsonSchema": [CITY, RICH],
    "FunctionDeclaration.response": [{"type": "STRING"}], "FunctionDeclaration.responseJsonSchema": [{"type": "string"}],
    "allowedFunctionNames": [["get_weather"]], "latitude": [59.9], "longitude": [10.7],
    "fileSearchStoreNames": [["fileSearchStores/docs-1"]], "metadataFilter": ["author = \"Ada\""], "FileSearch.topK": [5],
    "excludedPredefinedFunctions": [["drag_and_drop"]], "timeRangeFilter": [{"startTime": "2026-01-01T00:00:00Z", "endTime": "2026-06-01T00:00:00Z"}],
    "dynamicThreshold": [0.6], "McpServer.name": ["docs"], "url": ["https://mcp.example.com/mcp"], "headers": [{"X-Key": "v"}], "timeout": ["30s"], "sseReadTimeout": ["300s"],
    "customConfigs": [{"a": 1}],
    "googleSearch": [{}, {"searchTypes": {"webSearch": {}}}, {"timeRangeFilter": {"startTime": "2026-01-01T00:00:00Z", "endTime": "2026-06-01T00:00:00Z"}}],
    "codeExecution": [{}], "urlContext": [{}], "serviceTier": ["standard", "flex", "priority"],
    "latLng": [{"latitude": 59.9, "longitude": 10.7}],
}
G_TOOL = {"functionDeclarations": [{"name": "get_weather", "description": "Current weather of a city.", "parametersJsonSchema": CITY}]}


def google_types():
    from google.genai import models, types as g

    reader = Reader(models=True)
    source = inspect.getsource(models)
    functions = dict(re.findall(r"^def _(\w+)_to_mldev\((.*?)(?=^def |^class )", source, re.S | re.M))
    hide = set()
    for name, text in functions.items():
        for f in re.findall(r"\['(\w+)'\]\) is not None:\s*raise", text):
            hide.add(f"{name}." + re.sub(r"_(\w)", lambda m: m[1].upper(), f))
    moved = re.findall(r"setv\(\s*(\w+),\s*\['(\w+)'\]", functions["GenerateContentConfig"])
    inside = {name for where, name in moved if where == "to_object"}
    return g, reader, hide, inside


def g_base(**more):
    return {"contents": [{"role": "user", "parts": [{"text": "What is the weather in Oslo?"}]}]} | more


def g_part(kind, v):
    part = {kind: v}
    ask = {"role": "user", "parts": [{"text": "What is the weather in Oslo?"}]}
    then = {"role": "user", "parts": [{"text": "And tomorrow?"}]}
    if kind in ("inlineData", "fileData"):
        if kind == "inlineData" and "displayName" in v:
            return None
        return {"contents": [{"role": "user", "parts": [part, {"text": "What is this?"}]}]}
    if kind == "functionCall":
        if "partialArgs" in v or "willContinue" in v:
            return None
        v.setdefault("name", "get_weather")
        r = {"name": "get_weather", "response": {"output": "7 °C"}} | ({"id": v["id"]} if "id" in v else {})
        return {"contents": [ask, {"role": "model", "parts": [part | {"thoughtSignature": "CpYBAVSoXO5"}]}, {"role": "user", "parts": [{"functionResponse": r}]}], "tools": [G_TOOL]}
    if kind == "functionResponse":
        if "willContinue" in v or "scheduling" in v:
            return None
        v.setdefault("name", "get_weather")
        v.setdefault("response", {"output": "7 °C, rain"})
        for p in v.get("parts", []):
            if not ("inlineData" in p or "fileData" in p) or set(p) - {"inlineData"}:
                return None
            p["inlineData"] = {"mimeType": "image/png", "data": PNG}
        c = {"name": "get_weather", "args": {"city": "Oslo"}} | ({"id": v["id"]} if "id" in v else {})
        return {"contents": [ask, {"role": "model", "parts": [{"functionCall": c, "thoughtSignature": "CpYBAVSoXO5"}]}, {"role": "user", "parts": [part]}], "tools": [G_TOOL]}
    if kind in ("executableCode", "codeExecutionResult"):
        code = {"executableCode": {"language": "PYTHON", "code": "print(6 * 7)"}}
        res = {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "42\n"}}
        if kind == "executableCode":
            v |= {"language": "PYTHON", "code": "print(6 * 7)"}
            code = part
        else:
            v.setdefault("outcome", "OUTCOME_OK")
            res = part
        if "id" in v:
            code["executableCode"]["id"] = res["codeExecutionResult"]["id"] = v["id"]
        return {"contents": [ask, {"role": "model", "parts": [code, res, {"text": "42"}]}, then], "tools": [{"codeExecution": {}}]}
    return None


def google(depth, nulls=True):
    g, reader, hide, inside = google_types()
    w = Walk(G_VALUES, False, hide)
    src = "pkg:pypi/google-genai@3.4#types.py "
    yield body(G, "base", src + "Content", g_base())
    part = reader.read(g.Part)
    for kind in ("inlineData", "fileData", "functionCall", "functionResponse", "executableCode", "codeExecutionResult"):
        n = field(part, kind)
        for label, v in w.walk(n, depth, "Part", kind):
            if kind == "inlineData":
                v |= {"mimeType": "image/png", "data": PNG}
            if kind == "fileData":
                v.setdefault("fileUri", "https://generativelanguage.googleapis.com/v1beta/files/abc123")
                v.setdefault("mimeType", "image/png")
                if "displayName" in v:
                    continue
            b = g_part(kind, v)
            if b:
                yield body(G, slug(f"part {kind} {label}"), src + f"Part.{kind}", b)
    image = {"inlineData": {"mimeType": "image/png", "data": PNG}}
    video = {"fileData": {"mimeType": "video/mp4", "fileUri": "https://www.youtube.com/watch?v=9hE5-98ZeCg"}}
    for f, where in (("mediaResolution", image), ("videoMetadata", video)):
        for label, v in w.walk(field(part, f), depth, "Part", f):
            if not v or "numTokens" in v or "contentLayers" in v:
                continue
            yield body(G, slug(f"part {f} {label}"), src + f"Part.{f}", {"contents": [{"role": "user", "parts": [where | {f: v}, {"text": "What is this?"}]}]})
    config = reader.read(g.GenerateContentConfig)
    raw = reader.read(g.GenerationConfig)
    fields = dict(config[2]) | dict(raw[2])
    fields["speechConfig"] = (False, reader.read(g.SpeechConfig))
    for f, (_, n) in sorted(fields.items()):
        if f not in inside or f in ("responseFormat", "translationConfig", "audioTranscriptionConfig", "enableEnhancedCivicAnswers", "enableAffectiveDialog"):
            continue
        for label, v in w.walk(n, depth, "GenerateContentConfig", f):
            c = {f: v}
            if not v and isinstance(v, dict):
                continue
            if f in ("responseSchema", "responseJsonSchema"):
                c["responseMimeType"] = "application/json"
            if f == "responseMimeType" and v == "text/x.enum":
                c["responseSchema"] = {"type": "STRING", "enum": ["rain", "sun"]}
            if f == "logprobs":
                c["responseLogprobs"] = True
            if f == "speechConfig":
                c["responseModalities"] = ["AUDIO"]
                if has(v, replicatedVoiceConfig=ANY) or has(v, voice=ANY) or has(v, multiSpeakerVoiceConfig={}):
                    continue
                if "multiSpeakerVoiceConfig" in v:
                    one = {"voiceConfig": {"prebuiltVoiceConfig": {"voiceName": "Kore"}}}
                    v = c["speechConfig"] = {"multiSpeakerVoiceConfig": {"speakerVoiceConfigs": [one | {"speaker": "Anna"}, one | {"speaker": "Ben"}]}}
                if has(v, voiceConfig={}) or has(v, prebuiltVoiceConfig={}):
                    continue
            if f == "imageConfig":
                c["responseModalities"] = ["IMAGE"]
            if f == "mediaResolution":
                yield body(G, slug(f"config {f} {label}"), src + f"GenerateContentConfig.{f}", {"contents": [{"role": "user", "parts": [image, {"text": "What is this?"}]}], "generationConfig": c})
                continue
            yield body(G, slug(f"config {f} {label}"), src + f"GenerateContentConfig.{f}", g_base(generationConfig=c))
    for label, v in w.walk(field(config, "safetySettings"), depth, "GenerateContentConfig", "safetySettings"):
        v = v[0]
        v.setdefault("category", "HARM_CATEGORY_HARASSMENT")
        v.setdefault("threshold", "BLOCK_ONLY_HIGH")
        if v["category"] not in ("HARM_CATEGORY_HARASSMENT", "HARM_CATEGORY_HATE_SPEECH", "HARM_CATEGORY_SEXUALLY_EXPLICIT", "HARM_CATEGORY_DANGEROUS_CONTENT", "HARM_CATEGORY_CIVIC_INTEGRITY"):
            continue
        yield body(G, slug(f"safety {label}"), src + "SafetySetting", g_base(safetySettings=[v]))
    for label, v in w.walk(field(config, "toolConfig"), depth, "GenerateContentConfig", "toolConfig"):
        if not v or has(v, retrievalConfig={}) or has(v, functionCallingConfig={}):
            continue
        b = g_base(tools=[G_TOOL], toolConfig=v)
        if has(v, allowedFunctionNames=ANY):
            v["functionCallingConfig"]["mode"] = "ANY"
        if "retrievalConfig" in v:
            b["tools"] = [{"googleMaps": {}}]
        if "includeServerSideToolInvocations" in v:
            b["tools"] = [{"googleSearch": {}}, G_TOOL]
        yield body(G, slug(f"tool-config {label}"), src + "ToolConfig", b)
    for f in ("cachedContent", "serviceTier", "store"):
        for label, v in w.walk(fields[f][1], depth, "GenerateContentConfig", f):
            yield body(G, slug(f"top {f} {label}"), src + f"GenerateContentConfig.{f}", g_base(**{f: v}))
    tool = reader.read(g.Tool)
    for f, (_, n) in tool[2].items():
        if w.hidden("Tool", f) or f in ("mcpServers", "googleSearchRetrieval"):
            continue
        for label, v in w.walk(n, depth, "Tool", f):
            if f == "functionDeclarations":
                v[0].setdefault("name", "get_weather")
                v[0].setdefault("description", "Current weather of a city.")
                if "behavior" in v[0]:
                    continue
            if f == "fileSearch":
                v.setdefault("fileSearchStoreNames", ["fileSearchStores/docs-1"])
            if f == "computerUse":
                v.setdefault("environment", "ENVIRONMENT_BROWSER")
                if set(v) - {"environment", "excludedPredefinedFunctions"} or v["environment"] != "ENVIRONMENT_BROWSER":
                    continue
            if f == "googleMaps" and has(v, authConfig=ANY):
                continue
            yield body(G, slug(f"tool {f} {label}"), src + f"Tool.{f}", g_base(tools=[{f: v}]))


# ---------------------------------------------------------------------------------------------------------------------
# Mistral

M = "mistral-chat"
F = "mistral-fim"
M_VALUES = {
    "temperature": [0.3, 0, 1.5], "top_p": [0.9, 1], "max_tokens": [512], "min_tokens": [10], "stop": ["END", ["END", "STOP"]], "random_seed": [42, 0],
    "metadata": [{"ticket": "4711"}], "presence_penalty": [0.5, -2, 2], "frequency_penalty": [0.5], "repetition_penalty": [1.1], "top_k": [40],
    "top_logprobs": [3], "top_prompt_logprobs": [3], "n": [2], "prompt_cache_key": ["support-v3"],
    "image_url": ["https://example.com/cat.png", "data:image/png;base64," + PNG, {"url": "https://example.com/cat.png"}, {"url": "https://example.com/cat.png", "detail": "low"}],
    "document_url": ["https://example.com/report.pdf"], "document_name": ["report.pdf"], "text": ["What is the weather in Oslo?"],
    "reference_ids": [[1, 2]], "file_id": ["7c1f3b8e-2d14-4f0a-9d60-1f2d1c6b1a11"], "signature": ["sig-1"], "input_audio": [WAV],
    "FunctionCall.name": ["get_weather"], "FunctionCall.arguments": ["{\"city\": \"Oslo\"}", {"city": "Oslo"}], "ToolCall.id": ["D681PevKs"], "ToolCall.type": ["function"], "ToolChoice.type": ["function"], "index": [0],
    "tool_call_id": ["D681PevKs"], "ToolMessage.name": ["get_weather"], "Function.name": ["get_weather"], "Function.parameters": [CITY, RICH], "Function.description": ["Current weather of a city."],
    "FunctionName.name": ["get_weather"], "JSONSchema.name": ["answer"], "JSONSchema.schema": [ANSWER], "JSONSchema.description": ["The answer."],
    "Prediction.content": ["y = 1"], "Prediction.type": ["content"], "prompt": ["def add(a, b):\n    "], "suffix": ["\n    return c\n", ""],
    "stream": [True, False], "thinking": [[{"type": "text", "text": "I need the tool."}]],
    "ThinkChunk.thinking": [[{"type": "text", "text": "I need the tool."}], [{"type": "reference", "reference_ids": [1]}]],
    "model_name": ["mistral-moderation-latest"], "sexual": [0.1], "hate_and_discrimination": [0.1], "violence_and_threats": [0.1], "dangerous_and_criminal_content": [0.1],
    "selfharm": [0.1], "health": [0.9], "financial": [0.9], "law": [0.9], "pii": [0.2], "dangerous": [0.1], "criminal": [0.1], "jailbreaking": [0.2],
}
M_TAGS = ("type",)
M_TOOL = {"type": "function", "function": {"name": "get_weather", "description": "Current weather of a city.", "parameters": CITY}}
M_CALL = {"id": "D681PevKs", "type": "function", "function": {"name": "get_weather", "arguments": "{\"city\": \"Oslo\"}"}}
# Chunks that chat is known to accept, by role (docs.mistral.ai, capabilities; the SDK's unions are the same for all roles).
M_NOT_NULL = {"top_p", "stop", "presence_penalty", "frequency_penalty", "reasoning_effort"}  # null in the SDK, not in the specification
M_USER = {"text", "image_url", "document_url", "input_audio", "file"}


def m_base(**more):
    return {"model": "mistral-large-latest", "messages": [{"role": "user", "content": "What is the weather in Oslo?"}]} | more


def m_top(name, v):
    b = m_base()
    b[name] = v
    if name == "tools" and v:
        if not has(v, type="function") and "function" not in v[0]:
            return None  # connectors of the conversations API
    if v is None and name in M_NOT_NULL:
        return None
    if name in ("tool_choice", "parallel_tool_calls"):
        b["tools"] = [M_TOOL]
    if name == "n" and v:
        b["temperature"] = 0.7
    if name == "top_logprobs" and v:
        b["logprobs"] = True
    if name in ("prompt_logprobs", "top_prompt_logprobs"):
        return None
    if name == "reasoning_effort":
        if v not in ("none", "high", None):
            return None
        b["model"] = "mistral-small-latest"
    if name == "prompt_mode":
        b["model"] = "magistral-medium-latest"
    if name == "response_format":
        if v.get("type") == "json_schema" or "json_schema" in v:
            if v.get("json_schema", 0) is None:
                return None
            v |= {"type": "json_schema"}
            v.setdefault("json_schema", {"name": "answer", "schema": ANSWER})
        if v.get("type") == "json_object":
            b["messages"][0]["content"] += " Answer in JSON."
        if not v:
            return None
    if name == "prediction":
        b |= {"model": "codestral-latest", "messages": [{"role": "user", "content": "Rename x to y:\nx = 1"}]}
        v |= {"type": "content"}
        v.setdefault("content", "y = 1")
    return b


def m_message(role, v):
    b = m_base()
    v = {"role": role} | {k: x for k, x in v.items() if k != "role"}
    content = v.get("content")
    chunks = content if isinstance(content, list) else []
    kinds = [c["type"] for c in chunks]
    for c in chunks:
        for x in c.get("thinking", []) if c["type"] == "thinking" else []:
            x.setdefault("type", "text")
    if role == "user":
        if any(k not in M_USER for k in kinds) or content is None:
            return None
        if "input_audio" in kinds:
            b["model"] = "voxtral-small-latest"
        if kinds and kinds != ["text"]:
            chunks.append({"type": "text", "text": "What is this?"})
        b["messages"] = [v]
    elif role == "system":
        if "thinking" in kinds:
            b["model"] = "magistral-medium-latest"
            chunks.insert(0, {"type": "text", "text": "Think first."})
        b["messages"].insert(0, v)
    elif role == "assistant":
        if any(k not in ("text", "thinking", "reference") for k in kinds):
            return None
        if "thinking" in kinds:
            b["model"] = "magistral-medium-latest"
            chunks.append({"type": "text", "text": "Rain."})
        if "reference" in kinds:
            chunks.insert(0, {"type": "text", "text": "Rain."})
        if v.get("tool_calls"):
            v["tool_calls"][0].setdefault("id", "D681PevKs")
            v.setdefault("content", "")
            b["tools"] = [M_TOOL]
            b["messages"] += [v, {"role": "tool", "tool_call_id": "D681PevKs", "name": "get_weather", "content": "7 °C"}]
        else:
            if not content:
                v["content"] = "Rain."
            b["messages"].append(v)
            if v.get("prefix") is not True:
                b["messages"].append({"role": "user", "content": "And tomorrow?"})
    else:
        if any(k != "text" for k in kinds) or content is None:
            return None
        v.setdefault("tool_call_id", "D681PevKs")
        if v["tool_call_id"] is None:
            return None
        b["tools"] = [M_TOOL]
        b["messages"] += [{"role": "assistant", "content": "", "tool_calls": [M_CALL]}, v]
    return b


class MistralWalk(Walk):
    """Tags have defaults in these models and are sent all the same."""

    def obj(self, node, depth):
        name, fields = short(node[1]), node[2]
        tag = tag_of(node)
        for label, v in super().obj(node, depth):
            if tag and name not in ("Tool", "ToolChoice", "ToolCall", "ResponseFormat", "Prediction"):
                v = {"type": tag} | v
            yield label, v


def mistral_chat(depth, nulls=True):
    from mistralai.client.models.chatcompletionrequest import ChatCompletionRequest

    reader = Reader(models=True)
    root = reader.read(ChatCompletionRequest)
    w = MistralWalk(M_VALUES, nulls, {"Message.role"})
    src = "pkg:pypi/mistralai@3.7#client/models/chatcompletionrequest.py "
    yield body(M, "base", src + "ChatCompletionRequest", m_base())
    for f, (_, n) in root[2].items():
        if f in ("model", "messages"):
            continue
        for label, v in w.walk(n, depth, "ChatCompletionRequest", f):
            b = m_top(f, v)
            if b:
                yield body(M, slug(f"top {f} {label}"), src + f"ChatCompletionRequest.{f}", b)
    for n in members(field(root, "messages")):
        role = short(n[1]).replace("Message", "").lower()
        for label, v in w.walk(n, depth, short(n[1]), ""):
            b = m_message(role, v)
            if b:
                yield body(M, slug(f"message {role} {label}"), src + n[1], b)


def mistral_fim(depth, nulls=True):
    from mistralai.client.models.fimcompletionrequest import FIMCompletionRequest

    root = Reader(models=True).read(FIMCompletionRequest)
    w = MistralWalk(M_VALUES, nulls)
    src = "pkg:pypi/mistralai@3.7#client/models/fimcompletionrequest.py "
    base = {"model": "codestral-latest", "prompt": "def add(a, b):\n    "}
    yield body(F, "base", src + "FIMCompletionRequest", base)
    for f, (_, n) in root[2].items():
        if f in ("model", "prompt"):
            continue
        for label, v in w.walk(n, depth, "FIMCompletionRequest", f):
            if v is None and f in M_NOT_NULL:
                continue
            yield body(F, slug(f"top {f} {label}"), src + f"FIMCompletionRequest.{f}", base | {"suffix": "\n    return c\n"} | {f: v})


# ---------------------------------------------------------------------------------------------------------------------
# Ollama

O = "ollama-chat"
OG = "ollama-generate"
O_TOOL = {"type": "function", "function": {"name": "get_weather", "description": "Current weather of a city.", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}}
# Options of the server (ollama/ollama, api/types.go, Options and Runner; the SDK lacks some and keeps removed ones).
O_OPTIONS = {
    "num_keep": 4, "seed": 42, "num_predict": 128, "top_k": 40, "top_p": 0.9, "min_p": 0.05, "typical_p": 1.0, "repeat_last_n": 64,
    "temperature": 0.2, "repeat_penalty": 1.1, "presence_penalty": 0.5, "frequency_penalty": 0.5, "stop": ["END"],
    "num_ctx": 8192, "num_batch": 512, "num_gpu": 1, "main_gpu": 0, "use_mmap": True, "num_thread": 8,
}
# Options that only the SDK has: the server logs unknown options and skips them.
O_OLD = {"numa": False, "low_vram": False, "f16_kv": True, "logits_all": False, "vocab_only": False, "use_mlock": True, "embedding_only": False,
         "tfs_z": 1.0, "mirostat": 0, "mirostat_tau": 5.0, "mirostat_eta": 0.1, "penalize_newline": True}
O_SHARED = {
    "stream": [True, False], "keep_alive": ["5m", "-1", 0, 300, 1.5], "format": ["json", ANSWER], "think": [True, False, "low", "medium", "high"],
    "logprobs": [True], "options": [{"temperature": 0, "seed": 1, "stop": ["\n\n", "END"], "num_ctx": 32768}, {}],
}


def o_model(b, f, v):
    if f == "think":
        b["model"] = "gpt-oss:20b" if isinstance(v, str) else "qwen3:8b"
    return b


def ollama_chat(depth, nulls=True):
    src = "pkg:pypi/ollama@0.6.3#_types.py ChatRequest"
    base = {"model": "llama3.2", "messages": [{"role": "user", "content": "What is the weather in Oslo?"}]}
    yield body(O, "base", src, base)
    for f, values in O_SHARED.items():
        for i, v in enumerate(values):
            yield body(O, slug(f"top {f} {i}"), f"{src}.{f}", o_model(base | {f: v}, f, v))
    for k, v in (O_OPTIONS | O_OLD).items():
        yield body(O, slug(f"option {k}"), f"ollama 0.6.3, _types.py, Options.{k}", base | {"options": {k: v}})
    yield body(O, "top-logprobs", src + ".top_logprobs", base | {"logprobs": True, "top_logprobs": 5})
    for k in ("truncate", "shift"):
        yield body(O, f"top-{k}", f"ollama/ollama, api/types.go, ChatRequest.{k}", base | {k: True})
    yield body(O, "load", "ollama/ollama, docs/api.md, load a model", {"model": "llama3.2", "messages": []})
    yield body(O, "unload", "ollama/ollama, docs/api.md, unload a model", {"model": "llama3.2", "messages": [], "keep_alive": 0})
    u = base["messages"]
    call = {"function": {"name": "get_weather", "arguments": {"city": "Oslo"}}}
    msgs = {
        "system": [{"role": "system", "content": "Be brief."}, *u],
        "image": [{"role": "user", "content": "What is this?", "images": [PNG]}],
        "images": [{"role": "user", "content": "Compare.", "images": [PNG, PNG]}],
        "assistant": [*u, {"role": "assistant", "content": "Rain."}, {"role": "user", "content": "And tomorrow?"}],
        "thinking": [*u, {"role": "assistant", "thinking": "I should look.", "content": "Rain."}, {"role": "user", "content": "And tomorrow?"}],
        "prefill": [*u, {"role": "assistant", "content": "In Oslo"}],
    }
    for k, m in msgs.items():
        yield body(O, f"message-{k}", "ollama 0.6.3, _types.py, Message", base | {"messages": m})
    results = {
        "tool-name": {"role": "tool", "tool_name": "get_weather", "content": "7 °C"},
        "call-id": {"role": "tool", "tool_call_id": "call_1", "tool_name": "get_weather", "content": "7 °C"},
        "plain": {"role": "tool", "content": "7 °C"},
        "empty": {"role": "tool", "tool_name": "get_weather", "content": ""},
        "image": {"role": "tool", "tool_name": "get_weather", "content": "A chart.", "images": [PNG]},
    }
    for k, r in results.items():
        c = ({"id": "call_1"} if k == "call-id" else {}) | call
        yield body(O, f"tool-result-{k}", "ollama/ollama, api/types.go, Message", base | {"messages": [*u, {"role": "assistant", "content": "", "tool_calls": [c]}, r], "tools": [O_TOOL]})
    for i, p in enumerate((CITY, RICH, {"type": "object", "properties": {}})):
        yield body(O, f"tool-{i}", "ollama 0.6.3, _types.py, Tool", base | {"tools": [{"type": "function", "function": {"name": "get_weather", "description": "Weather.", "parameters": p}}]})


def ollama_generate(depth, nulls=True):
    src = "pkg:pypi/ollama@0.6.3#_types.py GenerateRequest"
    base = {"model": "llama3.2", "prompt": "Why is the sky blue?"}
    yield body(OG, "base", src, base)
    for f, values in O_SHARED.items():
        for i, v in enumerate(values):
            yield body(OG, slug(f"top {f} {i}"), f"{src}.{f}", o_model(base | {f: v}, f, v))
    for k, v in (O_OPTIONS | O_OLD).items():
        yield body(OG, slug(f"option {k}"), f"ollama 0.6.3, _types.py, Options.{k}", base | {"options": {k: v}})
    more = {
        "suffix": {"model": "codellama:code", "prompt": "def add(a, b):", "suffix": "    return c"},
        "system": base | {"system": "Be brief."},
        "template": base | {"template": "{{ .System }} {{ .Prompt }}"},
        "raw": base | {"raw": True, "prompt": "[INST] why is the sky blue? [/INST]"},
        "context": base | {"context": [1, 2, 3]},
        "images": {"model": "llava", "prompt": "What is this?", "images": [PNG]},
        "load": {"model": "llama3.2"},
        "unload": {"model": "llama3.2", "keep_alive": 0},
        "top-logprobs": base | {"logprobs": True, "top_logprobs": 5},
        "image-size": {"model": "x/z-image-turbo", "prompt": "a cat", "width": 512, "height": 512, "steps": 8},
    }
    for k, b in more.items():
        yield body(OG, f"top-{k}", src, b)


# ---------------------------------------------------------------------------------------------------------------------
# llama.cpp

L = "llamacpp-infill"
# ggml-org/llama.cpp, tools/server/README.md, POST /infill and POST /completion
L_OPTIONS = {
    "input_extra": [[{"filename": "a.py", "text": "import os\n"}], [{"text": "import os\n"}], []], "prompt": ["    # sum\n"],
    "n_predict": [64, -1], "max_tokens": [64], "stream": [True, False], "temperature": [0.2, 0], "dynatemp_range": [0.5], "dynatemp_exponent": [1.0],
    "top_k": [40, 0], "top_p": [0.95], "min_p": [0.05], "top_n_sigma": [1.5, -1], "typical_p": [1.0], "xtc_probability": [0.1], "xtc_threshold": [0.1],
    "repeat_last_n": [64, 0, -1], "repeat_penalty": [1.1], "presence_penalty": [0.1], "frequency_penalty": [0.1], "dry_multiplier": [0.8], "dry_base": [1.75],
    "dry_allowed_length": [2], "dry_penalty_last_n": [64], "dry_sequence_breakers": [["\n", ":", "\"", "*"]], "mirostat": [0, 1, 2], "mirostat_tau": [5.0], "mirostat_eta": [0.1],
    "seed": [42, -1], "n_keep": [0, -1], "n_indent": [4], "n_probs": [5], "min_keep": [1], "t_max_predict_ms": [1000], "id_slot": [-1, 0], "cache_prompt": [True, False],
    "return_tokens": [True], "samplers": [["top_k", "top_p", "temperature"], []], "timings_per_token": [True], "return_progress": [True], "post_sampling_probs": [True],
    "response_fields": [["content", "generation_settings/n_predict"]], "lora": [[{"id": 0, "scale": 0.5}]], "stop": [["\n\n"], []], "ignore_eos": [True, False],
    "logit_bias": [[[15043, 1.0]], [[15043, False]], [["Hello", -0.5]], {"15043": -100}, []], "grammar": ["root ::= [a-z]+"], "json_schema": [ANSWER], "sse_ping_interval": [15, -1],
    "n_discard": [0], "n_cache_reuse": [256],
}


def llamacpp_infill(depth, nulls=True):
    src = "pkg:github/ggml-org/llama.cpp#tools/server/README.md, POST /infill"
    base = {"input_prefix": "def add(a, b):\n", "input_suffix": "    return c\n"}
    yield body(L, "base", src, base)
    yield body(L, "empty", src, {"input_prefix": "", "input_suffix": ""})
    for k, values in L_OPTIONS.items():
        for i, v in enumerate(values):
            b = base | {k: v}
            if k == "return_progress":
                b["stream"] = True
            if k == "post_sampling_probs":
                b["n_probs"] = 3
            yield body(L, slug(f"option {k} {i if len(values) > 1 else ''}"), src + f", {k}", b)


# ---------------------------------------------------------------------------------------------------------------------
# OpenRouter, from its published file

OR_VALUES = {
    "model": ["anthropic/claude-sonnet-4.6"], "models": [["anthropic/claude-sonnet-4.6", "openai/gpt-5.2"]], "text": ["What is the weather in Oslo?"],
    "temperature": [0.7], "top_p": [0.9], "top_k": [40], "top_a": [0.1], "min_p": [0.05], "frequency_penalty": [0.5], "presence_penalty": [0.5], "repetition_penalty": [1.1],
    "logit_bias": [{"50256": -100}], "max_tokens": [512], "max_completion_tokens": [512], "seed": [42], "top_logprobs": [5], "stop": ["END", ["END", "STOP"]], "user": ["user-1"], "session_id": ["s-1"],
    "metadata": [{"ticket": "4711"}], "prompt_cache_key": ["k"], "PromptCacheOptions.ttl": ["30m"], "PromptCacheBreakpoint.ttl": ["30m"], "image_config": [{"aspect_ratio": "16:9"}],
    "modalities": [["text"], ["text", "image"], ["image", "text"]], "ChatRequest.reasoning": [{"effort": e} for e in ("xhigh", "high", "medium", "low", "minimal", "none")] + [{"effort": "high", "summary": s} for s in ("auto", "concise", "detailed")],
    "ChatFunctionTool_function.parameters": [CITY], "ChatJsonSchemaConfig.schema": [ANSWER], "name": ["helper"],
    "order": [["anthropic", "openai"]], "only": [["anthropic"]], "ignore": [["deepinfra"]], "ProviderPreferences.max_price": [{"prompt": "1", "completion": "2"}], "quantizations": [["fp8", "bf16"]],
    "preferred_max_latency": [2.5, {"p90": 3}], "preferred_min_throughput": [50, {"p50": 100}], "sort": ["price", "throughput", "latency", {"by": "price", "partition": "model"}],
    "url": ["https://example.com/cat.png"], "grammar": ["root ::= [a-z]+"], "allowed_models": [["anthropic/*"]], "excluded_models": [["openai/*"]], "cost_quality_tradeoff": [7],
    "include_domains": [["example.com"]], "exclude_domains": [["example.org"]], "allowed_domains": [["example.com"]], "blocked_domains": [["example.org"]], "excluded_domains": [["example.org"]],
    "max_results": [5], "max_uses": [3], "search_prompt": ["Use these results:"], "country": ["NO"], "city": ["Oslo"], "region": ["Oslo"], "timezone": ["Europe/Oslo"], "max_content_tokens": [20000],
    "analysis_models": [["openai/gpt-5.2"]], "min_coding_score": [0.5], "step_count": [5], "tool_name": ["get_weather"], "max_cost_in_dollars": [0.5], "reason": ["length"],
    "trace": [{"trace_id": "t1", "trace_name": "app", "span_name": "s", "generation_name": "g", "parent_span_id": "p", "env": "test"}], "debug": [{"echo_upstream_body": True}],
}


def openrouter(depth, spec, nulls=True):
    schemas = json.loads(Path(spec).read_text())["components"]["schemas"]
    s = Spec(schemas)
    root = s.read(schemas["ChatRequest"], "ChatRequest")
    w = Walk(OR_VALUES, nulls)
    base = {"model": "anthropic/claude-sonnet-4.6", "messages": [{"role": "user", "content": "What is the weather in Oslo?"}]}
    where = "OpenRouter's OpenAPI, components.schemas.ChatRequest."
    for f, (_, n) in root[2].items():
        if f in ("messages", "model", "audio", "fusion"):
            continue
        for label, v in w.walk(n, depth, "ChatRequest", f):
            b = base | {f: v}
            if f == "stream_options" and v is not None:
                b["stream"] = True
            if f == "top_logprobs" and v is not None:
                b["logprobs"] = True
            if f == "debug":
                b["stream"] = True
            if f in ("tool_choice", "parallel_tool_calls"):
                b["tools"] = [C_TOOL]
                if has(v, type="function"):
                    b["tool_choice"] = {"type": "function", "function": {"name": "get_weather"}}
                elif isinstance(v, dict):
                    b |= {"tool_choice": {"type": "openrouter:web_search"}, "tools": [{"type": "openrouter:web_search"}]}
            if f == "tools" and has(v, type="function"):
                v[0]["function"]["name"] = "get_weather"
            if f == "tools" and (has(v, type="text") or has(v, type="openrouter:subagent") and has(v, tools=ANY)):
                continue
            if f == "plugins" and isinstance(v[0].get("user_location"), dict):
                v[0]["user_location"]["type"] = "approximate"
            if f == "stop_server_tools_when":
                b["tools"] = [{"type": "openrouter:web_search"}]
            if f == "models":
                b.pop("model")
            if f in ("image_config", "modalities") and v and f == "image_config" or f == "modalities" and "image" in v:
                b |= {"model": "google/gemini-2.5-flash-image", "modalities": ["image", "text"]}
            if f == "prompt_cache_options":
                b["model"] = "openai/gpt-5.6-sol"
            if f == "response_format" and v["type"] == "json_object":
                b["messages"] = [{"role": "user", "content": "Give JSON."}]
            if f == "plugins" and has(v, id="fusion") and has(v, tools=ANY):
                continue
            yield body(C, slug(f"openrouter {f} {label}"), where + f, b, provider="OpenRouter")


# ---------------------------------------------------------------------------------------------------------------------

WIRES = {
    A: anthropic, C: openai_chat, R: openai_responses, G: google, M: mistral_chat, F: mistral_fim, O: ollama_chat, OG: ollama_generate, L: llamacpp_infill,
}


def features(value, where="body"):
    """What a body shows: members by the kind of their object, alternatives, words of enumerations."""
    if isinstance(value, dict):
        where = str(value.get("type") or value.get("role") or where)
        for k, v in value.items():
            if k in ("properties", "input_schema", "parameters", "schema", "parametersJsonSchema", "responseJsonSchema", "json_schema"):
                yield (where, k)
                continue
            yield (where, k, type(v).__name__)
            if isinstance(v, bool) or isinstance(v, str) and re.fullmatch(r"[A-Za-z0-9_.]{2,48}", v) and k != "model":
                yield (where, k, str(v))
            yield from features(v, k)
    elif isinstance(value, list):
        for v in value:
            yield (where, "item", type(v).__name__, str(v.get("type")) if isinstance(v, dict) else "")
            yield from features(v, where)


def selection(items):
    """Those that show something which none before them shows."""
    shown = set()
    for item in items:
        new = set(features(item["body"])) - shown
        if new:
            shown |= new
            yield item



def unique(items):
    """Each body once; each name once."""
    bodies, names = set(), {}
    for item in items:
        key = json.dumps(item["body"], sort_keys=True)
        if key in bodies:
            continue
        bodies.add(key)
        n = names[item["name"]] = names.get(item["name"], 0) + 1
        if n > 1:
            item["name"] += f"-v{n}"
        yield item


def bodies(wire, depth, nulls=True, spec=None):
    if wire == "openrouter":
        return unique(openrouter(depth, spec, nulls))
    return unique(WIRES[wire](depth, nulls))


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--all", metavar="WIRE")
    a.add_argument("--depth", type=int, default=3)
    a.add_argument("--no-null", action="store_true", help="leave out members that are null")
    a.add_argument("--spec", help="OpenRouter's OpenAPI file")
    a.add_argument("--write", metavar="DIR")
    a.add_argument("--count", action="store_true")
    o = a.parse_args()
    if o.all:
        for wire in WIRES if o.all == "all" else [o.all]:
            for item in bodies(wire, o.depth, not o.no_null, o.spec):
                print(json.dumps(item, ensure_ascii=False))
    if o.count:
        for wire in WIRES:
            print(f"{wire:28}{len(list(bodies(wire, o.depth, not o.no_null))):6}", file=sys.stderr)
        if o.spec:
            print(f"{'openrouter':28}{len(list(bodies('openrouter', o.depth, not o.no_null, o.spec))):6}", file=sys.stderr)
    if o.write:
        for wire in [*WIRES, *(["openrouter"] if o.spec else [])]:
            for item in selection(bodies(wire, o.depth, not o.no_null, o.spec)):
                folder = Path(o.write) / item.pop("wire")
                folder.mkdir(parents=True, exist_ok=True)
                path = folder / f"gen-{item.pop('name')}.json"
                path.write_text(json.dumps(item, indent=2, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
