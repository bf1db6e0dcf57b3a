"""Checks what `reqc send --format events` printed.

Usage: events.py FILE EXPECTED…

Each EXPECTED is an object that an event must hold, and they must come in this order, others between them; or
`text=…`, the joined text of all events, or `text`: there is some. Every line must be an event, and the last one, only it, must be `done`.
"""

import json
import sys


def holds(event, expected):
    """Whether a value has everything that is expected of it."""
    if not isinstance(expected, dict):
        return event == expected
    return isinstance(event, dict) and all(key in event and holds(event[key], value) for key, value in expected.items())


def main(path, expected):
    with open(path, encoding="utf-8") as file:
        events = [json.loads(line) for line in file]
    names = [event["event"] for event in events]
    if names.count("done") != 1 or names[-1] != "done":
        sys.exit(f"`done` must come once, at the end: {names}")
    rest = iter(events)
    for wanted in expected:
        if wanted.startswith("text="):
            text = "".join(event["text"] for event in events if event["event"] == "text")
            if text != wanted.removeprefix("text="):
                sys.exit(f"{wanted!r}, but the text is {text!r}")
        elif wanted == "text":
            if "text" not in names:
                sys.exit(f"there is no text: {names}")
        elif not any(holds(event, json.loads(wanted)) for event in rest):
            shown = "\n".join(map(json.dumps, events))
            sys.exit(f"{wanted} is missing, or comes too early, in:\n{shown}")


main(sys.argv[1], sys.argv[2:])
