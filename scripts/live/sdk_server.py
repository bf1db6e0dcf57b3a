"""A server that answers official SDKs, and keeps what they send.

Usage: sdk_server.py PORT FOLDER                       answers until it is stopped; each request is a file of the folder
       sdk_server.py --compare COUNT COMPILED RECEIVED whether so many requests are those that `reqc render --format json` printed
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit


def block(index, start, *deltas):
    """The events of a content block of Anthropic's."""
    yield {"type": "content_block_start", "index": index, "content_block": start}
    for delta in deltas:
        yield {"type": "content_block_delta", "index": index, "delta": delta}
    yield {"type": "content_block_stop", "index": index}


def text_delta(text):
    return {"type": "text_delta", "text": text}


def claude(body):
    """An answer in Anthropic's events: first a call, then what its result says."""
    usage = {"input_tokens": 10, "output_tokens": 1}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": body["model"], "content": []}
    yield {"type": "message_start", "message": {**message, "stop_reason": None, "stop_sequence": None, "usage": usage}}
    last = body["messages"][-1]["content"][0]
    if last["type"] == "tool_result":
        result = last["content"]
        result = result if isinstance(result, str) else result[0]["text"]
        yield from block(0, {"type": "text", "text": ""}, text_delta("The product "), text_delta(f"is {result}."))
    else:
        thought = {"type": "thinking_delta", "thinking": "Six times seven."}
        signature = {"type": "signature_delta", "signature": "c2lnbmF0dXJl"}
        yield from block(0, {"type": "thinking", "thinking": "", "signature": ""}, thought, signature)
        yield from block(1, {"type": "text", "text": ""}, text_delta("I multiply."))
        call = {"type": "tool_use", "id": "toolu_1", "name": "multiply", "input": {}}
        arguments = ({"type": "input_json_delta", "partial_json": text} for text in ('{"a": 6, ', '"b": 7}'))
        yield from block(2, call, *arguments)
    reason = "end_turn" if last["type"] == "tool_result" else "tool_use"
    yield {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": {"output_tokens": 9}}
    yield {"type": "message_stop"}


def responses(body):
    """An answer in events of OpenAI's Responses API."""
    part = {"type": "output_text", "text": "It is 42.", "annotations": []}
    item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]}
    response = {"id": "resp_1", "object": "response", "model": body["model"], "status": "in_progress", "output": []}
    place = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    events = [
        {"type": "response.created", "response": response},
        {"type": "response.output_item.added", "output_index": 0, "item": {**item, "status": "in_progress", "content": []}},
        {"type": "response.content_part.added", **place, "part": {**part, "text": ""}},
        {"type": "response.output_text.delta", **place, "delta": "It is ", "logprobs": []},
        {"type": "response.output_text.delta", **place, "delta": "42.", "logprobs": []},
        {"type": "response.output_text.done", **place, "text": "It is 42.", "logprobs": []},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": {**response, "status": "completed", "output": [item]}},
    ]
    for number, event in enumerate(events):
        yield {**event, "sequence_number": number}


ANSWERS = {"/v1/messages": claude, "/v1/responses": responses}


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()

    def do_POST(self):
        folder = Path(sys.argv[2])
        text = self.rfile.read(int(self.headers["content-length"])).decode()
        headers = {name.lower(): value for name, value in self.headers.items()}
        received = {"method": "POST", "path": self.path, "headers": headers, "text": text}
        (folder / str(len(list(folder.iterdir())))).write_text(json.dumps(received))
        answer = ANSWERS.get(urlsplit(self.path).path)
        self.send_response(200 if answer else 404)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        for event in answer(json.loads(text)) if answer else ():
            self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())


def compare(count, compiled, received):
    made, sent = ([json.loads(path.read_text()) for path in sorted(Path(of).iterdir())] for of in (compiled, received))
    if [len(made), len(sent)] != [count, count]:
        sys.exit(f"{len(made)} requests were compiled and {len(sent)} sent, not {count}")
    for request, arrived in zip(made, sent):
        url = urlsplit(request["url"])
        headers = {name: value for name, value in request["headers"].items() if "${" not in value}
        wanted = [request["method"], url.path, headers, request["body"]]
        found = {name: arrived["headers"].get(name) for name in headers}
        found = [arrived["method"], urlsplit(arrived["path"]).path, found, json.loads(arrived["text"])]
        if wanted != found:
            sys.exit(f"compiled: {json.dumps(wanted)}\narrived:  {json.dumps(found)}")


if sys.argv[1] == "--compare":
    compare(int(sys.argv[2]), *sys.argv[3:])
else:
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
