#!/bin/sh
# Checks every compiled body, in every context, against the official SDKs' request types and the wire schemas.
# Usage: tests/conformance/run.sh [reqc]     (without a binary: cargo run --release)
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
venv=$root/target/conformance-venv
out=$root/target/conformance
reqc=${1:-}

# Recreated when the pins change.
if ! cmp -s "$here/requirements.txt" "$venv/requirements.txt"; then
    rm -rf "$venv"
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check --no-deps --require-hashes -r "$here/requirements.txt"
    cp "$here/requirements.txt" "$venv/requirements.txt"
fi

rm -rf "$out"
if [ -n "$reqc" ]; then
    "$reqc" compile --out "$out" --all-contexts -C "$root"
else
    cargo run --locked --quiet --release --manifest-path "$root/Cargo.toml" -- compile --out "$out" --all-contexts -C "$root"
fi
export PYTHONDONTWRITEBYTECODE=1
"$venv/bin/python" "$here/check.py" "$out"
for wire in anthropic-messages openai-chat openai-responses google-generate-content mistral-chat mistral-fim \
    ollama-chat ollama-generate llamacpp-infill; do
    "$venv/bin/python" "$here/generate.py" --all "$wire" > "$out/$wire.jsonl"
    "$venv/bin/python" "$here/sweep.py" "$wire" < "$out/$wire.jsonl"
done
