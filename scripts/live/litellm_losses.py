"""Translates compiled bodies with LiteLLM, and prints what `reqc compare` tells of each: see scripts/live/litellm-losses.

usage: litellm_losses.py REQC WORK; WORK/bodies holds what `reqc compile --out` wrote.
"""

import asyncio
import collections
import importlib.metadata
import json
import os
import re
import subprocess
import sys
import threading
from http.server import ThreadingHTTPServer
from importlib.machinery import SourceFileLoader
from pathlib import Path

os.environ.update(LITELLM_LOCAL_MODEL_COST_MAP="True", OPENAI_API_KEY="none", ANTHROPIC_API_KEY="none")
import litellm  # noqa: E402

HERE = Path(__file__).resolve().parent
# The agent whose bodies are translated, and the model name that selects the output format.
WAYS = {
    "Anthropic Messages → Chat Completions": ("claude-chat-tools", "custom_openai/gpt-5.4"),
    "Anthropic Messages → Responses": ("claude-chat-tools", "openai/gpt-5.4"),
    "Chat Completions → Anthropic Messages": ("openai-chat-tools", "anthropic/claude-sonnet-4-5"),
}


class Recorder:
    """A server that refuses every request and keeps its body."""

    def __init__(self, log: Path):
        self.log = log
        log.write_text("")
        record = SourceFileLoader("record_bodies", str(HERE.parent / "record-bodies")).load_module()
        server = ThreadingHTTPServer(("127.0.0.1", 0), record.Recorder)
        server.file = log
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.base = f"http://127.0.0.1:{server.server_port}"

    def bodies(self) -> list[dict]:
        return [json.loads(line)["body"] for line in self.log.read_text().splitlines()]


async def translated(recorder: Recorder, model: str, body: dict) -> dict:
    before = len(recorder.bodies())
    # LiteLLM gets the model as a separate argument. Streams are removed, because they would be refused later.
    body = {name: value for name, value in body.items() if name not in ("model", "stream", "stream_options")}
    settings = {"num_retries": 0, "max_retries": 0, **body}
    try:
        if model.startswith("anthropic/"):
            await litellm.acompletion(model=model, api_base=recorder.base, **settings)
        else:
            await litellm.anthropic.messages.acreate(model=model, api_base=recorder.base + "/v1", **settings)
    except Exception as error:
        if len(recorder.bodies()) == before:
            raise SystemExit(f"{model}: nothing was sent: {error}") from error
    return recorder.bodies()[before]


def differences(reqc: str, first: Path, second: Path) -> list[dict]:
    run = subprocess.run([reqc, "compare", str(first), str(second), "--format", "json"], capture_output=True, text=True, check=False)
    if run.returncode not in (0, 1):
        raise SystemExit(f"{first}: {run.stderr}")
    return [difference for pair in json.loads(run.stdout)["pairs"] for difference in pair["differences"]]


async def main(reqc: str, work: Path):
    litellm.telemetry, litellm.suppress_debug_info, litellm.drop_params = False, True, True
    recorder = Recorder(work / "log.jsonl")
    print(f"LiteLLM {importlib.metadata.version('litellm')}, each bundled context")
    for way, (agent, model) in WAYS.items():
        files = sorted(path for path in (work / "bodies" / agent).glob("*.json") if path.stem != "request")
        told, contexts = collections.Counter(), collections.defaultdict(list)
        for file in files:
            other = work / "translated.json"
            other.write_text(json.dumps(await translated(recorder, model, json.loads(file.read_text())), indent=2))
            for difference in differences(reqc, file, other):
                # The stream was removed before, and models differ between providers.
                if difference["subject"] in ("stream", "model") or difference["message"].startswith("`stream_options`"):
                    continue
                line = f"{difference['kind']}/{difference['subject']}"
                told[line] += 1
                if file.stem not in contexts[line]:
                    contexts[line].append(file.stem)
                    if len(contexts[line]) == 1:
                        contexts[line, "message"] = re.sub(r"\s+", " ", difference["message"])
        print(f"\n## {way}, {len(files)} bodies\n\n| difference | times | bodies | for example |\n| --- | --- | --- | --- |")
        for line, count in sorted(told.items()):
            first = contexts[line][0]
            message = contexts[line, "message"].replace("|", "\\|")
            print(f"| `{line}` | {count} | {len(contexts[line])} | `{first}`: {message} |")


asyncio.run(main(sys.argv[1], Path(sys.argv[2])))
