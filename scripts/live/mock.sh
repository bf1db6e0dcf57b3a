# Shared by the scripts that send to the mock of aimock.fixtures.json. Sourced after lib.sh.

# mock: starts the mock.
mock() {
  local prefix; prefix=$(locked aimock)
  port=$(free_port) url=http://127.0.0.1:$port
  "$prefix/node_modules/.bin/llmock" -h 127.0.0.1 -p "$port" -f "$here/aimock.fixtures.json" --strict >"$work/log" 2>&1 &
  server=$!
  wait_for "$url/health" "$work/log"
}

# send WHAT MESSAGE OPTION…: sends with the current agent; output, errors and exit status go to files and `code`.
send() {
  local what=$1 message=$2; shift 2
  code=0
  "$reqc" send --trust "$agent" -m "$message" "$@" >"$work/$what.out" 2>"$work/$what.err" || code=$?
}

tool_loop() {
  send loop "use the tool" --tools tools.toml --format events
  is "exit status" 0 "$code" || { cat "$work"/loop.*; return 1; }
  events "$work/loop.out" '{"event": "turn_start", "round": 1}' \
    '{"event": "tool_call_end", "name": "shout", "input": {"text": "hello"}}' \
    '{"event": "tool_result", "name": "shout", "content": "{\"TEXT\":\"HELLO\"}", "is_error": false}' \
    '{"event": "turn_start", "round": 2}' '{"event": "turn_end", "stop": "end_turn"}' \
    '{"event": "done", "state": "finished", "stop": "end_turn"}' "text=The tool said HELLO."
}
