"""Holds recorded requests against the rules; see scripts/judge-cassettes.

Each recording is an exchange: what was sent, and the status that the provider gave. `reqc lint` judges all bodies in one
run. A disagreement is a body that the provider took and reqc refuses, or the other way round.
"""

import argparse
import base64
import binascii
import collections
import dataclasses
import gzip
import json
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path
from typing import Any, Iterator
from urllib.parse import urlsplit

import yaml

# The ends of URL paths whose requests have a wire format; src/lint/address.rs has the same list.
ENDPOINTS = (
    "/chat/completions", "/responses", "/messages", ":generateContent", ":streamGenerateContent", "/api/chat",
    "/api/generate", "/infill", "/fim/completions",
)
# Status codes about the body. Others are about keys, permissions, limits and server errors.
REFUSED = (400, 413, 422)
# Headers that affect which bodies an API accepts.
HEADERS = ("anthropic-version", "anthropic-beta", "openai-beta", "content-type")
SUFFIXES = (".yaml", ".yml", ".json", ".har", ".jsonl", ".ndjson", ".httprr")
SHOWN = 240


@dataclasses.dataclass
class Exchange:
    """A request and what came back: `source` is `PATH#NUMBER`, counted from 0 within the file."""

    source: str
    method: str
    url: str
    headers: dict[str, str]
    body: Any
    status: int
    answer: str

    @property
    def is_request_to_model(self) -> bool:
        path = urlsplit(self.url).path.rstrip("/")
        is_model = path.endswith(ENDPOINTS) and "/threads/" not in path
        return self.method.upper() == "POST" and is_model and isinstance(self.body, dict)

    @property
    def is_taken(self) -> bool:
        return 200 <= self.status < 300

    @property
    def is_refused(self) -> bool:
        return self.status in REFUSED


class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
    """YAML without its objects: what a recorder tagged as one of its language is read as plain data."""


def plain(loader: Loader, _suffix: str, node: yaml.Node) -> Any:
    if isinstance(node, yaml.MappingNode):
        return loader.construct_mapping(node, deep=True)
    if isinstance(node, yaml.SequenceNode):
        # A subclass of str (such as `istr` of multidict) is replaced by its argument; anything else must stay hashable, as a
        # possible key.
        parts = loader.construct_sequence(node, deep=True)
        return parts[0] if len(parts) == 1 and isinstance(parts[0], str) else tuple(map(repr, parts))
    return loader.construct_scalar(node)


def binary(loader: Loader, node: yaml.Node) -> bytes:
    return unbased("".join(loader.construct_scalar(node).split()))


Loader.add_multi_constructor("", plain)
Loader.add_multi_constructor("!", plain)
Loader.add_constructor("!binary", binary)


def unbased(text: str) -> bytes:
    try:
        return base64.b64decode(text)
    except (binascii.Error, ValueError):
        return b""


def unpacked(data: bytes) -> bytes:
    """Bytes without the compression that HTTP allows, as far as the standard library knows it."""
    for unpack in (gzip.decompress, zlib.decompress):
        try:
            return unpack(data)
        except (OSError, EOFError, zlib.error):
            continue
    return data


def text_of(value: Any) -> str:
    """The text of a recorded body, however it was written down."""
    if isinstance(value, dict):
        if isinstance(value.get("base64_string"), str):
            return text_of(unbased(value["base64_string"]))
        if "string" in value:
            return text_of(value["string"])
        if isinstance(value.get("text"), str):
            packed = value.get("encoding") == "base64"
            return text_of(unbased(value["text"])) if packed else value["text"]
    if isinstance(value, bytes):
        return unpacked(value).decode("utf-8", "replace")
    if isinstance(value, str) or value is None:
        return value or ""
    return json.dumps(value, ensure_ascii=False)


def body_of(value: Any, parsed: Any = None) -> Any:
    """The JSON of a recorded body; `None` if it is none."""
    if parsed is not None:
        return parsed
    is_wrapped = isinstance(value, dict) and {"string", "base64_string"} & value.keys()
    if isinstance(value, dict) and not is_wrapped:
        return value
    for text in (text_of(value), text_of(unbased(value)) if isinstance(value, str) else ""):
        try:
            return json.loads(text)
        except ValueError:
            continue
    return None


def status_of(value: Any) -> int:
    code = value.get("code") if isinstance(value, dict) else value
    return int(code) if isinstance(code, (int, str)) and str(code).isdigit() else 0


def headers_of(value: Any) -> dict[str, str]:
    """The headers that matter, from a mapping of texts or lists, or from HAR's list of pairs."""
    if isinstance(value, list):
        value = {pair.get("name"): pair.get("value") for pair in value if isinstance(pair, dict)}
    found = {}
    for name, texts in (value or {}).items() if isinstance(value, dict) else ():
        if isinstance(name, str) and name.lower() in HEADERS:
            found[name.lower()] = ",".join(map(str, texts)) if isinstance(texts, list) else str(texts)
    return found


def of_vcr(interaction: dict) -> tuple[dict, dict]:
    """A request and a response of VCR's, in the form of a log's line. go-vcr has the number of the status in `code`."""
    sent, came = interaction.get("request") or {}, interaction.get("response") or {}
    request = {
        "method": sent.get("method"), "url": sent.get("uri") or sent.get("url"), "headers": sent.get("headers"),
        "body": body_of(sent.get("body"), sent.get("parsed_body")),
    }
    answer = came.get("parsed_body", came.get("body"))
    return request, {"status": status_of(came.get("code", came.get("status"))), "body": answer}


def of_nock(entry: dict) -> tuple[dict, dict]:
    body = entry.get("body")
    url = str(entry.get("scope", "")).removesuffix(":443") + str(entry.get("path", ""))
    request = {"method": entry.get("method"), "url": url, "headers": entry.get("reqheaders"), "body": body_of(body)}
    answer = entry.get("response")
    if isinstance(answer, list) and all(isinstance(part, str) for part in answer):
        answer = unpacked(binascii.unhexlify("".join(answer))) if is_hex("".join(answer)) else "".join(answer)
    return request, {"status": status_of(entry.get("status")), "body": answer}


def is_hex(text: str) -> bool:
    return bool(text) and len(text) % 2 == 0 and not set(text.lower()) - set("0123456789abcdef")


def of_har(entry: dict) -> tuple[dict, dict]:
    sent, came = entry.get("request") or {}, entry.get("response") or {}
    request = {
        "method": sent.get("method"), "url": sent.get("url"), "headers": sent.get("headers"),
        "body": body_of((sent.get("postData") or {}).get("text")),
    }
    return request, {"status": status_of(came.get("status")), "body": came.get("content")}


def of_line(line: dict) -> tuple[dict, dict]:
    """A line of a log: `url`, `body`, `status` and the answer, at the top or in `request` and `response`."""
    sent = line.get("request") if isinstance(line.get("request"), dict) else line
    came = line.get("response") if isinstance(line.get("response"), dict) else line
    request = {
        "method": sent.get("method", "POST"), "url": sent.get("url") or sent.get("uri"),
        "headers": sent.get("headers"), "body": body_of(sent.get("body"), sent.get("parsed_body")),
    }
    status = came.get("status", came.get("status_code"))
    answer = came.get("error") or (came.get("body") if came is not line else None)
    return request, {"status": status_of(status), "body": answer}


def of_httprr(data: bytes) -> Iterator[tuple[dict, dict]]:
    """The exchanges of a file of Go's httprr: for each, a line with the lengths of the request and the response, and both as
    they were sent. Raises `ValueError` if it is something else."""
    title, _, rest = data.partition(b"\n")
    if title != b"httprr trace v1":
        raise ValueError("no httprr trace")
    while rest:
        lengths, _, rest = rest.partition(b"\n")
        sent, came = map(int, lengths.split())
        request, response, rest = rest[:sent], rest[sent:sent + came], rest[sent + came:]
        (method, path, *_), headers, body = message(request)
        (_, status, *_), _, answer = message(response)
        host = next((value for name, value in headers.items() if name.lower() == "host"), "")
        url = path if "://" in path else f"https://{host}{path}"
        yield (
            {"method": method, "url": url, "headers": headers, "body": body_of(body.decode("utf-8", "replace"))},
            {"status": status_of(status), "body": answer},
        )


def message(data: bytes) -> tuple[list[str], dict[str, str], bytes]:
    """The words of the first line of an HTTP message, its headers, and its body."""
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    return first.split(), dict(line.split(": ", 1) for line in lines if ": " in line), body


def pairs(document: Any) -> Iterator[tuple[dict, dict]]:
    """The exchanges of a document of any of the forms; none if it is of another."""
    if isinstance(document, dict):
        for name, read in (("interactions", of_vcr), ("http_interactions", of_vcr), ("recordings", of_vcr)):
            if isinstance(document.get(name), list):
                yield from (read(entry) for entry in document[name] if isinstance(entry, dict))
                return
        entries = document.get("log", {}).get("entries") if isinstance(document.get("log"), dict) else None
        if isinstance(entries, list):
            yield from (of_har(entry) for entry in entries if isinstance(entry, dict))
        elif "body" in document or isinstance(document.get("request"), dict):
            yield of_line(document)
    elif isinstance(document, list):
        for entry in document:
            if isinstance(entry, dict) and "scope" in entry and "path" in entry:
                yield of_nock(entry)
            elif isinstance(entry, dict):
                yield from pairs(entry)


def documents(path: Path) -> Iterator[Any]:
    """The documents of a file; raises `ValueError` or `yaml.YAMLError` if it is none that can be read."""
    text = path.read_text("utf-8", errors="replace")
    if path.suffix in (".jsonl", ".ndjson"):
        yield from (json.loads(line) for line in text.splitlines() if line.strip())
    elif path.suffix in (".json", ".har"):
        yield json.loads(text)
    elif "nteractions:" in text or "uri:" in text:
        yield from yaml.load_all(text, Loader)


def exchanges(root: Path, files: list[Path]) -> Iterator[Exchange]:
    for path in files:
        try:
            if path.suffix == ".httprr":
                found = list(of_httprr(path.read_bytes()))
            else:
                found = [pair for document in documents(path) for pair in pairs(document)]
        except (ValueError, RecursionError, yaml.YAMLError, OSError) as error:
            print(f"not read: {path}: {str(error).splitlines()[0]}", file=sys.stderr)
            continue
        name = path.relative_to(root).as_posix() if root.is_dir() else path.name
        for number, (sent, came) in enumerate(found):
            yield Exchange(
                f"{name}#{number}", str(sent["method"] or ""), str(sent["url"] or ""), headers_of(sent["headers"]),
                sent["body"], came["status"], text_of(came["body"]),
            )


def recorded(folders: list[Path]) -> list[Exchange]:
    found = []
    for root in folders:
        every = sorted(root.rglob("*")) if root.is_dir() else [root]
        files = [path for path in every if path.suffix in SUFFIXES and path.is_file()]
        found.extend(exchanges(root, files))
    return [one for one in found if one.is_request_to_model and (one.is_taken or one.is_refused)]


def lint(reqc: str, all_of_them: list[Exchange]) -> dict[int, list[dict]]:
    """The findings by number of line, from one run over all bodies."""
    with tempfile.TemporaryDirectory() as folder:
        lines = ({"url": one.url, "headers": one.headers, "body": one.body} for one in all_of_them)
        Path(folder, "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        # A second line makes the file JSON Lines, even for a single request.
        if len(all_of_them) == 1:
            with Path(folder, "log.jsonl").open("a") as file:
                file.write('{"url": "/v1/embeddings", "body": {"model": "m", "input": "a"}}\n')
        command = [reqc, "lint", "log.jsonl", "--format", "json"]
        out = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    try:
        found = json.loads(out.stdout)["diagnostics"]
    except (ValueError, KeyError):
        sys.exit(f"reqc lint gave no report:\n{out.stderr}")
    by_line = collections.defaultdict(list)
    for finding in found:
        by_line[finding.get("line")].append(finding)
    return by_line


def judged_before(path: Path | None) -> dict[str, str]:
    """Exchanges that somebody looked at: `SOURCE<TAB>WHY` a line; `#` begins a comment."""
    lines = path.read_text("utf-8").splitlines() if path else []
    entries = (line.partition("\t") for line in lines if line.strip() and not line.startswith("#"))
    return {source: why for source, _, why in entries}


def compare(reqc: str, all_of_them: list[Exchange], judged: dict[str, str]) -> int:
    """Prints each disagreement and the figures; returns how many disagreements nobody judged."""
    counted = [one for one in all_of_them if one.source not in judged]
    by_line = lint(reqc, counted) if counted else {}
    figures = collections.Counter()
    for number, one in enumerate(counted, 1):
        # The model was still available when the request was recorded.
        found = [finding for finding in by_line.get(number, []) if finding["code"] != "provider/retired-model"]
        errors = [finding for finding in found if finding["severity"] == "error"]
        model, host = one.body.get("model"), urlsplit(one.url).netloc
        if one.is_taken:
            figures["taken"] += 1
            figures["refused here"] += bool(errors)
            for finding in errors:
                told = f"{finding['code']}: {finding['message'][:SHOWN]}"
                print(f"REFUSED HERE, TAKEN THERE\t{one.source}\t{host} {model}\t{told}")
        else:
            figures["refused"] += 1
            figures["found here"] += bool(errors)
            figures["warned here"] += bool(found) and not errors
            if not found:
                words = " ".join(one.answer.split())[:SHOWN]
                print(f"TAKEN HERE, REFUSED THERE\t{one.source}\t{host} {model}\t{one.status} {words}")
    passed = figures["taken"] - figures["refused here"]
    print(f"{passed} of {figures['taken']} bodies that were taken pass without an error")
    print(f"{figures['found here']} of {figures['refused']} bodies that were refused have an error, "
          f"{figures['warned here']} a warning")
    print(f"{len(all_of_them) - len(counted)} were judged before")
    return figures["refused here"] + figures["refused"] - figures["found here"] - figures["warned here"]


def self_check(folder: Path, reqc: str) -> None:
    """Reads the small cassettes of each form, and compares with what is expected of them."""
    expected = json.loads((folder / "expected.json").read_text("utf-8"))
    found = recorded([folder / "recorded"])
    shown = ("status", "headers", "body", "answer")
    seen = {one.source: {name: getattr(one, name) for name in shown} for one in found}
    if seen != expected["exchanges"]:
        sys.exit(f"judge-cassettes: read {json.dumps(seen, indent=1)}")
    left = compare(reqc, found, judged_before(folder / "judged.tsv"))
    if left != expected["disagreements"]:
        sys.exit(f"judge-cassettes: {left} disagreements, {expected['disagreements']} expected")


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/judge-cassettes", description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="*", type=Path, metavar="FOLDER", help="a folder of recordings, or one file")
    parser.add_argument("--reqc", required=True, help="the binary (default: a debug build)")
    parser.add_argument("--judged", type=Path, metavar="FILE", help="lines SOURCE<TAB>WHY of exchanges that count neither way")
    parser.add_argument("--self-check", type=Path, metavar="FOLDER", help="try the script on small cassettes of its own")
    given = parser.parse_args()
    reqc = str(Path(given.reqc).resolve())
    if given.self_check:
        return self_check(given.self_check, reqc)
    missing = [str(folder) for folder in given.folders if not folder.exists()]
    if missing or not given.folders:
        parser.error(f"there is no {missing[0]}" if missing else "name at least one folder")
    sys.exit(bool(compare(reqc, recorded(given.folders), judged_before(given.judged))))


if __name__ == "__main__":
    main()
