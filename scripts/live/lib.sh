# What the scripts of this folder share: a scratch repository, checks, and a server that is stopped at the end. Sourced.

work=$(mktemp -d)
server= proxy=
failed=0

clean_up() {
  for pid in $proxy $server; do kill "$pid" 2>/dev/null || true; wait "$pid" 2>/dev/null || true; done
  rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

# stop WHY [FILE]: gives up, with the end of a file.
stop() {
  echo "$name: $1" >&2
  if [[ -n ${2:-} ]]; then tail -20 "$2" >&2; fi
  exit 1
}

# locked NAME [FOLDER]: the folder into which the packages of scripts/npm/NAME, or of another folder, are installed, exactly as its lock
# file says. Nothing that they bring is run.
locked() {
  local from=${2:-$root/scripts/npm/$1} prefix=$root/target/npm/$1
  if ! cmp -s "$from/package-lock.json" "$prefix/package-lock.json" || [[ ! -d $prefix/node_modules ]]; then
    mkdir -p "$prefix" && cp "$from/package.json" "$from/package-lock.json" "$prefix"
    npm ci --silent --no-audit --no-fund --ignore-scripts --prefix "$prefix" >"$work/npm" 2>&1 ||
      { cat "$work/npm" >&2; echo "$name: npm cannot install it" >&2; return 1; }
  fi
  echo "$prefix"
}

# pinned NAME FILE: a folder with Python and the packages of a file, whose hashes are checked. Made anew when the file changes.
pinned() {
  local venv=$root/target/$1-venv
  if ! cmp -s "$2" "$venv/requirements.txt"; then
    rm -rf "$venv"
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check --no-deps --require-hashes -r "$2" >"$work/pip" 2>&1 ||
      { cat "$work/pip" >&2; echo "$name: pip cannot install it" >&2; return 1; }
    cp "$2" "$venv/requirements.txt"
  fi
  echo "$venv"
}

# check WHAT COMMAND…: one line if the command holds, all that it said if not.
check() {
  local what=$1 status; shift
  # Not in an `if`: there, `set -e` would have no effect within the command.
  set +e; (set -e; "$@") >"$work/said" 2>&1; status=$?; set -e
  if [[ $status == 0 ]]; then echo "ok: $what"; else echo "WRONG: $what"; tail -20 "$work/said" | cut -c1-400 | sed 's/^/  /'; failed=1; fi
}

# is WHAT WANTED FOUND: two texts are the same.
is() {
  [[ $2 == "$3" ]] && return
  printf '%s\n  wanted: %s\n  found:  %s\n' "$@"
  return 1
}

# has TEXT FILE: a file holds a text.
has() { grep -qF -- "$1" "$2" || { echo "no \`$1\` in:"; cat "$2"; return 1; }; }

# The events of a file: see events.py.
events() { python3 "$here/events.py" "$@"; }

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

# wait_for URL LOG: until the server that was started last answers, or is gone, or two minutes have passed.
wait_for() {
  local pid=$!
  for _ in $(seq 600); do
    if curl -sf -o /dev/null "$1"; then return; fi
    kill -0 "$pid" 2>/dev/null || stop "the server ended" "$2"
    sleep 0.2
  done
  stop "the server does not answer" "$2"
}

# until_holds SECONDS COMMAND…: until the command holds.
until_holds() {
  local tries=$(($1 * 20)); shift
  for _ in $(seq "$tries"); do if "$@"; then return; fi; sleep 0.05; done
  echo "not so after $((tries / 20)) s: $*"
  return 1
}

# instance FILE NAME CLIENT_API URL: a provider instance, in place of the bundled one of that name.
instance() {
  cat >"providers/$1.toml" <<TOML
name = "$2"
client_api = "$3"
url = "$4"
api_key_ref = "env:REQC_LIVE_KEY"

[headers]
X-Test-Id = "$1"
TOML
}

# repository: makes a repository with one tool in the scratch folder, and goes there.
repository() {
  mkdir -p "$work/repository/providers" "$work/repository/agents"
  cd "$work/repository"
  : >reqc.toml
  cat >tools.toml <<'TOML'
[[tool]]
name = "shout"
description = "Says a text in capitals."
command = ["sh", "-c", "sleep 0.2; tr '[:lower:]' '[:upper:]'"]
env = ["PATH"]

[tool.schema]
type = "object"
required = ["text"]
additionalProperties = false
properties.text = { enum = ["hello", "good bye"] }
TOML
}
# What --trust remembers goes with the scratch folder.
export REQC_LIVE_KEY=no-key-at-all XDG_STATE_HOME=$work/state
