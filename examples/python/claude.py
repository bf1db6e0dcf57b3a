"""Sends compiled bodies with Anthropic's SDK, with a tool in a loop.

    pip install anthropic
    ANTHROPIC_API_KEY=… python examples/python/claude.py "What is 6 times 7?"
"""

import sys

from anthropic import Anthropic
from compiled import compiled

TOOL = {
    "name": "multiply",
    "description": "Multiplies two numbers.",
    "schema": {
        "type": "object",
        "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
        "required": ["a", "b"],
    },
}

# The block types that contexts have names for; every other block is sent back unchanged.
KNOWN = {"text": ["text"], "thinking": ["thinking", "signature"], "tool_use": ["id", "name", "input"]}


def block_of(block):
    """Converts a block of the answer to a block of a context."""
    if block.type in KNOWN:
        return {"type": block.type, **{key: getattr(block, key) for key in KNOWN[block.type]}}
    return {"type": "provider_block", "origin": "Claude", "data": block.to_dict()}


def result_of(call):
    product = call.input["a"] * call.input["b"]
    return {"type": "tool_result", "tool_use_id": call.id, "content": str(product)}


client = Anthropic()
history = [{"role": "user", "content": sys.argv[1]}]
while True:
    body, headers = compiled("Calculator", history, tools=[TOOL])
    del body["stream"]  # `stream()` says so itself.
    with client.messages.stream(**body, extra_headers=headers) as stream:
        for text in stream.text_stream:
            print(text, end="", flush=True)
        answer = stream.get_final_message()
    history.append({"role": "assistant", "content": [block_of(block) for block in answer.content]})
    calls = [block for block in answer.content if block.type == "tool_use"]
    if not calls:
        break
    history.append({"role": "user", "content": [result_of(call) for call in calls]})
print()
