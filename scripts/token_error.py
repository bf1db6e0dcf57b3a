"""The two halves of scripts/token-error: bodies with their wire formats, and estimates beside real counts."""

import gzip
import json
import os
import statistics
import sys
from pathlib import Path

# Parts of a URL's path, each with its wire format.
BY_URL = {
    "/v1/messages": "anthropic-messages",
    "/chat/completions": "openai-chat",
    "/responses": "openai-responses",
    "generateContent": "google-generate-content",
    "GenerateContent": "google-generate-content",
}


def golden():
    """Yields the wire format and the body of each golden file."""
    for folder in sorted(Path("golden").iterdir()):
        request = folder / "request.json"
        if not request.exists():
            continue
        wire = json.loads(request.read_text())["wire"]
        for file in sorted(folder.glob("*.json")):
            if file.name != "request.json":
                yield wire, json.loads(file.read_text())


def recorded(path):
    """Yields the wire format and the body of each line whose URL is known."""
    with (gzip.open if path.endswith(".gz") else open)(path, "rt") as lines:
        for line in map(json.loads, lines):
            url = line.get("url", "")
            wire = next((wire for part, wire in BY_URL.items() if part in url), None)
            if wire == "openai-chat" and "mistral" in url:
                wire = "mistral-chat"
            if wire and isinstance(line.get("body"), dict):
                yield wire, line["body"]


def bodies(paths):
    for wire, body in golden():
        print(json.dumps({"wire": wire, "body": body, "from": "golden"}))
    for path in paths:
        for wire, body in recorded(path):
            print(json.dumps({"wire": wire, "body": body, "from": "recorded"}))


def tokenizers(work, lines):
    """Returns the real counts of each line, by the name of a vocabulary."""
    import bpe_openai
    import mistral_common
    from mistral_common.tokens.tokenizers.tekken import Tekkenizer

    data = Path(mistral_common.__file__).parent / "data" / "tekken_240911.json"
    tekken = Tekkenizer.from_file(str(data))
    counts = {"mistral": [sum(len(tekken.encode(text, bos=False, eos=False)) for text in line["texts"]) for line in lines]}
    for name in ("o200k", "cl100k"):
        encode = bpe_openai.get_encoding(f"{name}_base").encode_ordinary
        counts[name] = [sum(len(encode(text)) for text in line["texts"]) for line in lines]
    for name in ("claude", "gemini"):
        file = Path(work) / f"{name}.txt"
        if file.exists():
            counts[name] = [int(count) for count in file.read_text().split()]
    return counts


def compare(work):
    lines = [json.loads(line) for line in open(os.path.join(work, "texts.jsonl"))]
    origins = [json.loads(line)["from"] for line in open(os.path.join(work, "bodies.jsonl"))]
    counts = tokenizers(work, lines)
    print("bodies     wire format              vocabulary  bodies  median   95th   worst")
    for origin in ("golden", "recorded"):
        for wire in sorted({line["wire"] for line in lines}):
            for name, real in counts.items():
                errors = sorted(
                    abs(line["estimated"][name] - count) / count
                    for line, count, of in zip(lines, real, origins)
                    if line["wire"] == wire and of == origin and count >= 20
                )
                if errors:
                    show(origin, wire, name, errors)
    print("\nleast 20 tokens; errors are shares of the real count")


def show(origin, wire, name, errors):
    median = statistics.median(errors)
    high = errors[min(len(errors) - 1, int(len(errors) * 0.95))]
    print(f"{origin:<10} {wire:<24} {name:<11} {len(errors):>6}  {median:>6.1%} {high:>6.1%} {errors[-1]:>7.1%}")


if __name__ == "__main__":
    if sys.argv[1] == "bodies":
        bodies(sys.argv[2:])
    else:
        compare(sys.argv[2])
