"""Sends a compiled body with OpenAI's SDK, and streams the answer.

    pip install openai
    OPENAI_API_KEY=… python examples/python/openai_responses.py "What is a monad?"
"""

import sys

from compiled import compiled
from openai import OpenAI

body, headers = compiled("Explainer", [{"role": "user", "content": sys.argv[1]}])
for event in OpenAI().responses.create(**body, extra_headers=headers):
    if event.type == "response.output_text.delta":
        print(event.delta, end="", flush=True)
print()
