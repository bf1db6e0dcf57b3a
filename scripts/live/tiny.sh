# Shared by the scripts that send to llama.cpp's server with tiny models. Sourced after lib.sh; `binary` and `port` are set.

# serve MODEL OPTION…: starts a server in place of the running one. One thread is enough for tiny models; on a busy machine,
# several would wait for each other.
serve() {
  local model=$1; shift
  if [[ -n $server ]]; then kill "$server"; wait "$server" 2>/dev/null || true; fi
  "$binary" -m "$model" --host 127.0.0.1 --port "$port" -c 8192 -np 2 -t 1 --jinja --no-warmup "$@" >"$work/log" 2>&1 &
  server=$!
  wait_for "$url/health" "$work/log"
}

# agent FILE NAME PARENT BODY…: writes an agent with these lines in its body. Models that always think reject a forced tool
# call, so Claude agents use one that thinks only on request.
agent() {
  local file=$1 title=$2 parent=$3; shift 3
  printf 'name = "%s"\nextends = "%s"\nenable_tools = true\n' "$title" "$parent" >"agents/$file.toml"
  if [[ $parent == Claude* ]]; then printf 'model = "claude-haiku-4-5"\nunset = ["thinking", "output_config"]\n' >>"agents/$file.toml"; fi
  printf '\n[body]\n' >>"agents/$file.toml"
  printf '%s\n' "$@" >>"agents/$file.toml"
}

# answers AGENT [TOKENS]: an answer streams in, ends properly, and reports its tokens, unless TOKENS is `uncounted`.
answers() {
  local status=0
  "$reqc" send --trust "$1" -m "Say something." --format events >"$work/out" 2>"$work/err" || status=$?
  is "exit status" 0 "$status" || { cat "$work"/out "$work"/err; return 1; }
  events "$work/out" '{"event": "turn_start", "round": 1}' '{"event": "turn_end"}' '{"event": "done", "state": "finished"}' text
  [[ ${2:-counted} != counted ]] || has '"event":"usage"' "$work/out"
}

# is_there PID PATTERN FILE: a line of a file matches, or the process that writes it has ended.
is_there() { grep -qs "$2" "$3" || ! kill -0 "$1" 2>/dev/null; }

# loops AGENT: the model calls a tool in every round; after three rounds it is cancelled. The saved session then continues up
# to the limit of rounds.
loops() {
  local status=0
  rm -f "$work/session" "$work/out"
  "$reqc" send --trust "$1" -m "Shout." --tools tools.toml --save "$work/session" --format events >"$work/out" 2>"$work/err" &
  local sending=$!
  until_holds 180 is_there "$sending" '"round":4\|"done"' "$work/out" || { kill "$sending" 2>/dev/null; cat "$work"/out "$work"/err; return 1; }
  kill -INT "$sending" 2>/dev/null || true
  wait "$sending" || status=$?
  is "exit status" 130 "$status" || { cat "$work"/out "$work"/err; return 1; }
  events "$work/out" '{"event": "tool_call_end", "name": "shout"}' '{"event": "tool_result", "name": "shout", "is_error": false}' \
    '{"event": "turn_start", "round": 2}' '{"event": "tool_result", "name": "shout", "is_error": false}' \
    '{"event": "turn_start", "round": 3}' '{"event": "done", "state": "cancelled"}'
  "$reqc" send --trust "$1" --resume "$work/session" --tools tools.toml --format events >"$work/out" 2>"$work/err" || status=$?
  events "$work/out" '{"event": "turn_start", "round": 10}' '{"event": "tool_result", "name": "shout", "is_error": false}' \
    '{"event": "done", "state": "failed", "error": {"category": "tool"}}'
}
