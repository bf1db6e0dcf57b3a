"""The request type of each wire format, as the official SDK declares it."""

import inspect
import re
import typing

import typing_extensions as te

from infill import INFILL
from walker import Walker


def anthropic():
    from anthropic.types import message_create_params as p

    from anthropic.types import MessageParam
    from anthropic.types.beta import BetaMessageParam

    # Fields that the SDK sends as headers. Compactions and MCP toolsets require a beta header.
    fields = without(p.MessageCreateParamsBase, "user_profile_id", "workspace_id")
    return fields | {"stream": bool, "messages": list[typing.Union[MessageParam, BetaMessageParam]]}, {}


def openai_chat():
    from openai.types.chat import completion_create_params as p

    return dict(te.get_type_hints(p.CompletionCreateParamsBase, include_extras=True)) | {"stream": typing.Optional[bool]}, {}


def openai_responses():
    from openai.types.responses import response_create_params as p

    return dict(te.get_type_hints(p.ResponseCreateParamsBase, include_extras=True)) | {"stream": typing.Optional[bool]}, {}


def google():
    from google.genai import models, types as g

    # The SDK has no type for the body: it puts these fields of GenerateContentConfig beside generationConfig (models.py,
    # _GenerateContentConfig_to_mldev), and the rest into it.
    source = inspect.getsource(models)
    functions = dict(re.findall(r"^def _(\w+)_to_mldev\((.*?)(?=^def |^class )", source, re.S | re.M))
    moved = re.findall(r"setv\(\s*(\w+),\s*\['(\w+)'\]", functions["GenerateContentConfig"])
    beside = {name for where, name in moved if where == "parent_object"}
    inside = {name for where, name in moved if where == "to_object"}
    config = {f.alias or k: f.annotation for k, f in g.GenerateContentConfig.model_fields.items()}
    config |= {f.alias or k: f.annotation for k, f in g.GenerationConfig.model_fields.items()}
    config["speechConfig"] = g.SpeechConfig
    generation = te.TypedDict("GenerationConfig", {k: config[k] for k in inside}, total=False)
    top = {
        "contents": te.Required[list[g.Content]],
        "systemInstruction": g.Content,
        "tools": list[g.Tool],
        "generationConfig": generation,
    } | {k: config[k] for k in beside - {"systemInstruction", "tools", "continuationToken"}}
    # Fields that the SDK rejects for this API (they belong to Vertex).
    dropped = {}
    for name, body in functions.items():
        for field in re.findall(r"\['(\w+)'\]\) is not None:\s*raise", body):
            dropped.setdefault(name, set()).add(re.sub(r"_(\w)", lambda m: m[1].upper(), field))
    return top, {"dropped": dropped}


def mistral_chat():
    from mistralai.client.models.chatcompletionrequest import ChatCompletionRequest

    return ChatCompletionRequest, {}


def mistral_fim():
    from mistralai.client.models.fimcompletionrequest import FIMCompletionRequest

    return FIMCompletionRequest, {}


def ollama_chat():
    from ollama import _types

    return _types.ChatRequest, {"strings": ("Image",)}


def ollama_generate():
    from ollama import _types

    return _types.GenerateRequest, {"strings": ("Image",)}


def llamacpp_infill():
    return INFILL, {}


def without(t, *names):
    return {k: v for k, v in te.get_type_hints(t, include_extras=True).items() if k not in names}


FORMATS = {
    "anthropic-messages": anthropic,
    "openai-chat": openai_chat,
    "openai-responses": openai_responses,
    "google-generate-content": google,
    "mistral-chat": mistral_chat,
    "mistral-fim": mistral_fim,
    "ollama-chat": ollama_chat,
    "ollama-generate": ollama_generate,
    "llamacpp-infill": llamacpp_infill,
}
LOADED = {}


def request_type(wire):
    if wire not in LOADED:
        t, options = FORMATS[wire]()
        if isinstance(t, dict):
            t = te.TypedDict("Request", t, total=False)
        LOADED[wire] = t, options
    return LOADED[wire]


def check(wire, body, excused):
    t, options = request_type(wire)
    return Walker(excused, **options).check(t, body)
