"""The pipeline of `reqc compile --check` as one would write it in Python, with jinja2 and jsonschema-rs or jsonschema.

    bench_peers.py check FOLDER [--one] [--memo] [--pure]    compares all bodies (or one) with FOLDER/golden
    bench_peers.py write FOLDER OUT                 writes all bodies
    bench_peers.py measure FOLDER REQC              times both; see bench-peers, which calls this

It does the same as far as bodies go, and less beside: no origins, no limits, no findings with places, no request lines.

All bundled contexts come out the same. Of histories it knows no more than these need: it gives no error to a provider's own call in
the middle of a turn, moves no results, and renames no repeated ids. So contexts of others may come out different; bench-peers says so.
"""

import functools
import json
import os
import re
import statistics
import subprocess
import sys
import time
import tomllib
from pathlib import Path

# The number of rounds after a warm-up, and of rounds for slow peers, which have no warm-up.
ROUNDS, SLOW_ROUNDS = 3, 1
# One body of a cheap format, to measure the cost of start-up.
ONE = ("Mistral FIM", "completion-prefix-suffix")


# Profiles: extends, unset, deep merge.


def merge(base, over):
    merged = dict(base)
    for key, value in over.items():
        both = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = merge(merged[key], value) if both else value
    return merged


def without(table, path):
    key, *rest = path
    if key not in table:
        return table
    if not rest:
        return {k: v for k, v in table.items() if k != key}
    return table | {key: without(table[key], rest)}


def resolve(profiles, name):
    own = profiles[name]
    if "extends" not in own:
        return own
    inherited = {k: v for k, v in resolve(profiles, own["extends"]).items() if k not in ("abstract", "hidden", "unset")}
    for path in own.get("unset", ()):
        inherited["body"] = without(inherited["body"], path.split("."))
    return merge(inherited, own)


# Contexts: the value of `ctx` in templates, in the normal form of the client API.

# Provider blocks: kinds that are kept only for the host, and kinds that are sent in formats with no other place for them.
KEPT_BLOCKS = ("groundingMetadata", "citationMetadata", "urlContextMetadata", "safetyRatings")
SENT_BLOCKS = {
    "openai-chat": ("custom", "audio", "images", "reasoning_details"),
    "mistral-chat": ("reference", "tool_reference"),
    "ollama-chat": (),
}


def image_data(block):
    keys = {"type": "image", "data": block["data"], "media_type": block["media_type"]}
    return keys | {"is_url": block.get("is_url", False)}


def block_data(block, tools):
    match block["type"]:
        case "text":
            return {"type": "text", "text": block["text"]}
        case "image":
            return image_data(block)
        case "document":
            title = {"title": block["title"]} if "title" in block else {}
            return {key: block[key] for key in ("type", "source", "data", "media_type")} | title
        case "audio":
            return {key: block[key] for key in ("type", "data", "media_type")}
        case "provider_block":
            return {key: block[key] for key in ("type", "origin", "data")}
        case "tool_use":
            tools[block["id"]] = block["name"]
            return {"type": "tool_use", "id": block["id"], "name": block["name"], "input": block["input"]}
        case "tool_result":
            content, images = block["content"], []
            if not isinstance(content, str):
                images = [image_data(part) for part in content if part["type"] == "image"]
                content = "".join(part["text"] for part in content if part["type"] == "text")
            data = {"type": "tool_result", "tool_use_id": block["tool_use_id"]}
            data |= {"name": tools.get(block["tool_use_id"], ""), "content": content}
            data["is_error"] = block.get("is_error", False)
            return data | ({"images": images} if images else {})
        case "thinking":
            data = {"type": "thinking", "thinking": block["thinking"], "signature": block.get("signature") or ""}
        case "redacted_thinking":
            data = {"type": "redacted_thinking", "data": block["data"]}
    return data | ({"origin": block["origin"]} if block.get("origin") else {})


def is_thinking(block):
    return block["type"] in ("thinking", "redacted_thinking")


def says_something(block):
    return block["text"].strip() != "" if block["type"] == "text" else not is_thinking(block)


def is_sent(block, wire, api):
    """Whether a provider's own block goes back."""
    kind = block["data"].get("type") or next(iter(block["data"]), "")
    is_kept = kind in KEPT_BLOCKS or (wire in SENT_BLOCKS and kind not in SENT_BLOCKS[wire])
    return block["origin"] == api and not is_kept


# Calls of a provider's own tools, and their results, with the name of the member that contains the call's id.
OWN_CALLS = {"server_tool_use": "id", "mcp_tool_use": "id", "custom_tool_call": "call_id"}
OWN_RESULTS = {"mcp_tool_result": "tool_use_id", "custom_tool_call_output": "call_id"} | {
    f"{tool}_tool_result": "tool_use_id" for tool in ("web_search", "web_fetch", "code_execution")
}


def own_ids(messages, halves):
    """The ids of a provider's own calls, or results."""
    blocks = (block["data"] for _, blocks in messages for block in blocks if block["type"] == "provider_block")
    return {data[halves[data["type"]]] for data in blocks if data.get("type") in halves}


def without_own_halves(messages):
    """Without a provider's own calls that have no result, and the other way round."""
    paired = own_ids(messages, OWN_CALLS) & own_ids(messages, OWN_RESULTS)
    halves = OWN_CALLS | OWN_RESULTS

    def stays(block):
        data = block["data"] if block["type"] == "provider_block" else {}
        return data.get("type") not in halves or data[halves[data["type"]]] in paired

    return [(role, [block for block in blocks if stays(block)]) for role, blocks in messages]


NAMES = {
    "anthropic-messages": (128, re.compile(r"[A-Za-z0-9_-]")),
    "openai-responses": (128, re.compile(r"[A-Za-z0-9_-]")),
    "openai-chat": (64, re.compile(r"[A-Za-z0-9_-]")),
    "mistral-chat": (64, re.compile(r"[A-Za-z0-9_-]")),
    "google-generate-content": (128, re.compile(r"[A-Za-z0-9_.:-]")),
}


def taken_name(wire, name):
    """The name of a called tool, as the format takes it."""
    if wire not in NAMES:
        return name
    limit, sign = NAMES[wire]
    is_first = re.compile("[A-Za-z_]") if wire == "google-generate-content" else sign
    fits = [bool((is_first if at == 0 else sign).fullmatch(c)) for at, c in enumerate(name)]
    if name and len(name.encode()) <= limit and all(fits):
        return name
    mark = stable_id(name)
    kept = list(zip(name, fits))[: max(limit - len(mark) - 1, 0)]
    return "".join(c if fits else "_" for c, fits in kept) + "_" + mark


def taken(block, at, wire, api, bound_from):
    """The block as the API takes it; `None` if it does not."""
    if is_thinking(block):
        is_unsigned = wire in CHECKS_REASONING and block["type"] == "thinking" and not block.get("signature")
        is_unbound = wire == "anthropic-messages" and at < bound_from
        return None if block.get("origin", api) != api or is_unsigned or is_unbound else block
    if block["type"] == "provider_block" and not is_sent(block, wire, api):
        return {"type": "text", "text": block["text"]} if "text" in block else None
    if block["type"] == "tool_use":
        return block | {"name": taken_name(wire, block["name"])}
    return block


# Formats that reject unsigned thinking, and those that reject a turn that ends with thinking.
CHECKS_REASONING = ("anthropic-messages", "openai-responses")


def without_last_thoughts(history, wire):
    """Without the thinking of turns that say nothing else; where something must follow, also thinking at a turn's end."""
    at = 0
    while at < len(history):
        end = at
        while end < len(history) and history[end][0] == "assistant":
            end += 1
        speaking = [index for index in range(at, end) if any(map(says_something, history[index][1]))]
        if not speaking or wire in CHECKS_REASONING:
            for index in range(speaking[-1] if speaking else at, end):
                blocks = history[index][1]
                kept = max((place + 1 for place, block in enumerate(blocks) if says_something(block)), default=0)
                if any(map(is_thinking, blocks[kept:])):
                    del blocks[kept:]
        at = end + 1
    return [(role, blocks) for role, blocks in history if blocks]


def normal(history, wire, api, bound_from):
    """Messages and typed items as messages of blocks, as the API takes them."""
    messages = []
    for at, message in enumerate(history):
        content = message["text"] if "kind" in message else message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        blocks = [block for block in (taken(block, at, wire, api, bound_from) for block in blocks) if block]
        messages.append((message.get("role", "system"), blocks))
    # These calls have no results.
    messages[-1:] = [(role, [block for block in blocks if block["type"] != "tool_use"]) for role, blocks in messages[-1:]]
    messages = without_own_halves(messages)
    says = lambda block: is_thinking(block) or says_something(block)
    messages = [(role, blocks) for role, blocks in messages if any(map(says, blocks))]
    tools = {}
    for role, blocks in without_last_thoughts(messages, wire):
        kept = [block_data(block, tools) for block in blocks]
        data = {"role": role, "content": "".join(b["text"] for b in kept if b["type"] == "text")}
        data["content_blocks"] = kept
        images = [block for block in kept if block["type"] == "image"]
        yield data | ({"images": images} if images else {})


# Keys of a context that a later turn can change.
OF_TURNS = ("language", "project", "files", "tools", "system_layers")


def states(context):
    """The conversation in each turn: how much of the history there is, and what stands beside it."""
    beside, history = {key: context[key] for key in OF_TURNS if key in context}, list(context.get("history", ()))
    found = [(beside, len(history), 0)]
    bound_from = 0
    for turn in context.get("turns", ()):
        before = len(history)
        history += turn["history"]
        beside = beside | {key: turn[key] for key in OF_TURNS if key in turn}
        bound_from = turn_from(history, before) if turn.get("renew") else bound_from
        found.append((beside, len(history), bound_from))
    return history, found


def turn_from(history, first):
    """The first message that the person wrote, from one on."""

    def is_written(message):
        blocks = message.get("content")
        has_result = not isinstance(blocks, str) and any(block["type"] == "tool_result" for block in blocks or ())
        return message.get("role") == "user" and not has_result

    return next((at for at in range(first, len(history)) if is_written(history[at])), len(history))


def told(history, found, texts):
    """The history with what came in each turn, if the agent says what surrounds it: its words where they changed, and files."""
    arrivals, files, said, length = [], [], "", 0
    for (beside, end, _), text in zip(found, texts):
        items = [text] if text and text != said else []
        for file in beside.get("files", ()):
            if file not in files:
                path, content = file["file_path"], file["content"]
                items.append(f'The user has attached this file:\n\n<file path="{path}">\n{content}\n</file>')
        arrivals += [(turn_from(history[:end], length), {"kind": "notification", "text": item}) for item in items]
        files, said, length = beside.get("files", ()), text, end
    all_of_it = []
    for at in range(len(history) + 1):
        all_of_it += [item for place, item in arrivals if place == at] + list(history[at : at + 1])
    bound_from = found[-1][2]
    return all_of_it, bound_from + sum(1 for place, _ in arrivals if place < bound_from)


def template_data(context, wire, api, texts):
    """`texts` are what the agent says of its surroundings in each turn; `None` if it has no words for them."""
    history, found = states(context)
    files, bound_from = found[-1][0].get("files"), found[-1][2]
    if texts is not None and context["kind"] == "chat":
        (history, bound_from), files = told(history, found, texts), None
    data = {"history": list(normal(history, wire, api, bound_from))}
    if context["kind"] == "completion":
        data |= {"prefix": context["prefix"], "suffix": context["suffix"]}
    tools = found[-1][0].get("tools")
    return data | ({"files_metadata": files} if files else {}) | ({"tools": tools} if tools else {})


# Templates: jinja2 with the functions of docs/templates.md.


def tojson(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def exists_in(table, key):
    return key in table


def filter_by_type(blocks, kind):
    return [block for block in blocks if block["type"] == kind]


def filter_skip_role(history, role):
    return [message for message in history if message["role"] != role]


FITS = {
    "anthropic-messages": re.compile(r"[A-Za-z0-9_-]+"),
    "openai-chat": re.compile(r"(?s).{1,40}"),
    "openai-responses": re.compile(r"(?s).{1,64}"),
    "mistral-chat": re.compile(r"[A-Za-z0-9]{9}"),
}


def tool_id(wire, given):
    return given if wire not in FITS or FITS[wire].fullmatch(given) else stable_id(given)


def stable_id(given):
    digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
    value, text = 0xCBF29CE484222325, ""
    for byte in given.encode():
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    for _ in range(9):
        value, digit = divmod(value, 62)
        text += digits[digit]
    return text


def environment(folder):
    import jinja2

    # StrictUndefined raises an error for `selectattr("images")` if an element has no images; minijinja treats it as false.
    class Strict(jinja2.StrictUndefined):
        __slots__ = ()

        def __bool__(self):
            return False

    loader = jinja2.ChoiceLoader([jinja2.FileSystemLoader(folder), jinja2.FileSystemLoader(folder / "partials")])
    found = jinja2.Environment(loader=loader, undefined=Strict, auto_reload=False, cache_size=-1)
    found.globals |= {
        "tojson": tojson,
        "existsIn": exists_in,
        "length": len,
        "lower": str.lower,
        "upper": str.upper,
        "filter_by_type": filter_by_type,
        "filter_skip_role": filter_skip_role,
        "strip_signature_suffix": lambda text: text.split("\n[Signature: ")[0],
        "agent_role": functools.cache(lambda name: (folder / f"roles/{name}.md").read_text()),
    }
    found.filters["tojson"] = tojson
    return found


def is_template(text):
    return "{{" in text or "{%" in text


def reads_prefix(folder, value):
    """Whether a body reads `ctx.prefix`, includes followed: a completion agent."""
    if isinstance(value, dict):
        return any(reads_prefix(folder, inner) for inner in value.values())
    if not isinstance(value, str) or not is_template(value):
        return False
    return text_reads_prefix(folder, value)


@functools.cache
def text_reads_prefix(folder, text):
    text = re.sub(r"(?s)\{#.*?#\}", "", text)
    partials = re.findall(r'["\'](partials/[^"\']+\.jinja)["\']', text)
    return "ctx.prefix" in text or any(text_reads_prefix(folder, (folder / path).read_text()) for path in partials)


# Provider steps.

WIRES = {
    "Claude": "anthropic-messages",
    "Google AI": "google-generate-content",
    "OpenAI (Responses API)": "openai-responses",
    "LM Studio (Responses API)": "openai-responses",
    "Mistral AI": "mistral-chat",
    "Ollama (Native)": "ollama-chat",
}


def wire_of(api, endpoint):
    if api in ("Mistral AI", "Codestral"):
        return "mistral-fim" if "fim/" in endpoint else "mistral-chat"
    if api == "Ollama (Native)" and endpoint.endswith("api/generate"):
        return "ollama-generate"
    if api == "llama.cpp" and endpoint.endswith("infill"):
        return "llamacpp-infill"
    return WIRES.get(api, "openai-chat")


def definition(wire, tool):
    name, description, schema = tool["name"], tool["description"], tool["schema"]
    named = {"name": name, "description": description}
    match wire:
        case "anthropic-messages":
            return named | {"input_schema": schema}
        case "openai-responses":
            return {"type": "function"} | named | {"parameters": schema, "strict": False}
        case "google-generate-content":
            return named | {"parametersJsonSchema": schema}
    return {"type": "function", "function": named | {"parameters": schema}}


def last_block(holder, key):
    if isinstance(holder.get(key), str) and holder[key]:
        holder[key] = [{"type": "text", "text": holder[key]}]
    for block in reversed(holder[key] if isinstance(holder.get(key), list) else ()):
        kind = block.get("type")
        if kind not in (None, "thinking", "redacted_thinking") and (kind != "text" or block["text"]):
            return block
    return None


def add_cache_control(body, profile):
    """The bundled profiles set no breakpoints of their own, so that three always fit."""
    wanted = profile.get("cache_breakpoints") or ("system", "tools", "history")
    mark = {"type": "ephemeral"} | ({"ttl": "1h"} if profile.get("cache_ttl") == "1h" else {})
    messages, tools = body.get("messages", ()), body.get("tools")
    targets = {
        "system": last_block(body, "system"),
        "tools": tools[-1] if tools else None,
        "history": last_block(messages[-2], "content") if len(messages) > 1 else None,
    }
    for place, target in targets.items():
        if place in wanted and target is not None:
            target["cache_control"] = dict(mark)


# Bodies.

COMMAS = re.compile(r'"(?:[^"\\]|\\.)*"|,(?=\s*[}\]])')
LEFT_OUT = object()


def strip_commas(text):
    return COMMAS.sub(lambda found: "" if found[0] == "," else found[0], text)


class Pipeline:
    def __init__(self, folder, memo=False, pure=False):
        self.folder, self.memo, self.pure = folder, {} if memo else None, pure
        self.environment = environment(folder)
        self.compiled = functools.cache(self.environment.from_string)
        read = lambda pattern: [tomllib.loads(path.read_text()) for path in sorted(folder.glob(pattern))]
        profiles = {profile["name"]: profile for profile in read("agents/**/*.toml")}
        self.instances = {instance["name"]: instance for instance in read("providers/*.toml")}
        self.contexts = [json.loads(path.read_text()) for path in sorted(folder.glob("contexts/*.json"))]
        self.data = functools.cache(lambda at, wire, api, texts: template_data(self.contexts[at], wire_of(api, ""), api, texts))
        self.last = [context | states(context)[1][-1][0] for context in self.contexts]
        self.agents = [resolve(profiles, name) for name, own in profiles.items() if not own.get("abstract")]

    def bodies(self, one=False):
        for profile in self.agents:
            if one and profile["name"] != ONE[0]:
                continue
            api = self.instances[profile["provider_instance"]]["client_api"]
            wire = wire_of(api, profile["endpoint"])
            kind = "completion" if reads_prefix(self.folder, profile["body"]) else "chat"
            slug = re.sub("[^a-z0-9]+", "-", profile["name"].lower()).strip("-")
            for at, context in enumerate(self.contexts):
                if context["kind"] != kind or (one and context["name"] != ONE[1]):
                    continue
                body = self.body(profile, at, wire, api)
                self.validate(body, wire, profile["provider_instance"], api)
                yield f"{slug}/{context['name']}.json", json.dumps(body, indent=2, ensure_ascii=False) + "\n"

    def body(self, profile, at, wire, api):
        context = self.last[at]
        texts = self.surroundings(profile, self.contexts[at])
        data = dict(self.data(at, wire, api, texts))
        prompt = self.system_prompt(profile, context)
        if prompt is not None:
            data["system_prompt"] = prompt
        scope = {"ctx": data, "tool_id": functools.partial(tool_id, wire)}
        body = self.value(profile["body"], scope, (at, wire, api, texts))
        if profile.get("enable_tools") and context.get("tools"):
            definitions = [definition(wire, tool) for tool in context["tools"]]
            is_google = wire == "google-generate-content"
            own = body.pop("tools", [])
            body["tools"] = own + ([{"functionDeclarations": definitions}] if is_google else definitions)
        if profile.get("cache_prompt") and wire == "anthropic-messages":
            add_cache_control(body, profile)
        if wire not in ("google-generate-content", "llamacpp-infill"):
            body = {"model": profile.get("model", "${MODEL}")} | body
        return body

    def system_prompt(self, profile, context):
        parts = [(layer.get("priority", 100), layer["text"]) for layer in context.get("system_layers", ())]
        if "system_prompt" in profile and context.get("system_prompt") != "omit":
            own = self.prompt(profile["system_prompt"], context)
            parts.insert(0, (0, own))
        texts = [text for _, text in sorted(parts, key=lambda part: part[0]) if text.strip()]
        return "\n\n".join(texts) if texts else None

    def surroundings(self, profile, context):
        if "surroundings" not in profile:
            return None
        if context.get("system_prompt") == "omit":
            return tuple("" for _ in states(context)[1])
        return tuple(self.prompt(profile["surroundings"], beside).strip() for beside, *_ in states(context)[1])

    def prompt(self, text, context):
        project = context.get("project", {})
        files = {f"/project/{path}": text for path, text in project.get("files", {}).items()}
        return self.compiled(text.replace("${PROJECT_DIR}", "/project")).render(
            language=context.get("language", ""),
            project_name=project.get("name", ""),
            file_exists=files.__contains__,
            read_file=files.__getitem__,
        )

    def value(self, value, scope, key):
        if isinstance(value, dict):
            made = {name: self.value(inner, scope, key) for name, inner in value.items()}
            return {name: inner for name, inner in made.items() if inner is not LEFT_OUT}
        if isinstance(value, list):
            return [made for made in (self.value(inner, scope, key) for inner in value) if made is not LEFT_OUT]
        if not isinstance(value, str) or not is_template(value):
            return value
        if self.memo is None:
            text = strip_commas(self.compiled(value).render(scope))
        else:
            key = (value, *key, scope["ctx"].get("system_prompt"))
            text = self.memo.get(key)
            if text is None:
                text = self.memo[key] = strip_commas(self.compiled(value).render(scope))
        return json.loads(text) if text.strip() else LEFT_OUT

    def validate(self, body, wire, instance, api):
        plain, extended = validators(wire, instance, api, self.pure)
        if not plain.is_valid(body) and not (extended and extended().is_valid(body)):
            sys.exit(f"not a body of {wire}: {json.dumps(body)[:200]}")


@functools.cache
def validators(wire, instance, api, pure):
    """The plain schema, and, made when a body needs it, the one with the extensions of a provider instance and its server."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "conformance"))
    from wire import effective, extensions, names as listed

    @functools.cache
    def validator(*names):
        found = effective(wire, *names)
        if not pure:
            return found.validator
        import jsonschema

        return jsonschema.Draft202012Validator(found.schema)

    used = tuple(name for name in listed(wire, instance, api) if name in extensions(wire))
    return validator(), functools.partial(validator, *used) if used else None


# Measuring.


def check(folder, one, memo, pure):
    for path, text in Pipeline(folder, memo, pure).bodies(one):
        if (folder / "golden" / path).read_bytes() != text.encode():
            sys.exit(f"{path} differs")


def measure(folder, reqc):
    bodies = sum(1 for path in (folder / "golden").glob("*/*.json") if path.name != "request.json")
    peer = [sys.executable, __file__, "check", str(folder)]
    own = [reqc, "-C", str(folder), "compile", "--check", "--quiet"]
    one = ["--agent", ONE[0], "--context", ONE[1]]
    serial = os.environ | {"RAYON_NUM_THREADS": "1"}
    # Command, arguments for one body, environment, rounds.
    subjects = {
        "reqc": (own, one, None, ROUNDS),
        "reqc, one thread": (own, one, serial, ROUNDS),
        "jinja2 + jsonschema-rs": (peer, ["--one"], None, ROUNDS),
        "… renders kept": ([*peer, "--memo"], ["--one"], None, ROUNDS),
        "jinja2 + jsonschema": ([*peer, "--pure"], ["--one"], None, SLOW_ROUNDS),
    }
    times = {name: ([], []) for name in subjects}
    for at in range(ROUNDS + 1):
        for name, (command, few, variables, rounds) in subjects.items():
            if at >= ROUNDS + 1 - rounds or rounds == ROUNDS:
                for runs, arguments in zip(times[name], ([], few)):
                    runs.append(run(command + arguments, variables))
    print(f"{bodies} bodies; medians of {ROUNDS} interleaved runs ({SLOW_ROUNDS} of jsonschema); with start-up and without")
    print(f"{'':<24} {'elapsed':>11} {'CPU':>11} {'per body':>20} {'reqc':>15} {'one thread':>15}")
    figures = {}
    for name, runs in times.items():
        # The first round warms up.
        measured = [some[-subjects[name][3] :] for some in runs]
        whole, start = ([statistics.median(each[at] for each in some) for at in (0, 1)] for some in measured)
        figures[name] = (whole, whole[0] / bodies, (whole[0] - start[0]) / (bodies - 1))
    for name, (whole, gross, net) in figures.items():
        elapsed, cpu = (f"{seconds * 1e3:.0f} ms" for seconds in whole)
        columns = f"{gross * 1e6:>8.1f} {net * 1e6:>8.1f} µs"
        for base in ("reqc", "reqc, one thread"):
            columns += f" {gross / figures[base][1]:>6.1f} {net / figures[base][2]:>6.1f} ×"
        print(f"  {name:<22} {elapsed:>11} {cpu:>11} {columns}")


def run(command, variables):
    """Elapsed and CPU seconds of a run, all threads; the second suffers less from what else the machine does."""
    start = time.perf_counter()
    process = subprocess.Popen(command, env=variables, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = status
    if status != 0:
        sys.exit(f"{command[0]} failed")
    return time.perf_counter() - start, usage.ru_utime + usage.ru_stime


def main():
    command, folder = sys.argv[1], Path(sys.argv[2]).resolve()
    if command == "measure":
        measure(folder, sys.argv[3])
    elif command == "write":
        for path, text in Pipeline(folder).bodies():
            target = Path(sys.argv[3], path)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(text.encode())
    else:
        check(folder, *(option in sys.argv for option in ("--one", "--memo", "--pure")))


main()
