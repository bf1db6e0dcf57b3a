"""Compiles the request body for a conversation with reqc."""

import json
import subprocess
from pathlib import Path

REPOSITORY = Path(__file__).parent.parent


def compiled(agent, history, **conversation):
    """Returns the body of an agent's request, and its headers without the key; `conversation` may have any other members of a context."""
    command = ["reqc", "-C", REPOSITORY, "render", agent, "--context", "-", "--format", "json"]
    context = json.dumps({"history": history, **conversation})
    made = subprocess.run(command, input=context, capture_output=True, text=True, encoding="utf-8")
    if made.returncode:
        raise SystemExit(made.stderr)
    request = json.loads(made.stdout)
    headers = {name: value for name, value in request["headers"].items() if "${" not in value}
    return request["body"], headers
