# Shared by the scripts of this folder: a scratch repository, checks, and a server that is stopped at the end. Sourced.

work=$(mktemp -d)
server= proxy=
failed=0

clean_up() {
  for pid in $proxy $server; do kill "$pid" 2>/dev/null || true; wait "$pid" 2>/dev/null || true; done
  rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

# stop WHY [FILE]: exits with a message and the end of a file.
stop() {
  echo "$name: $1" >&2
  if [[ -n ${2:-} ]]; then tail -20 "$2" >&2; fi
  exit 1
}

# locked NAME [FOLDER]: installs the packages of scripts/npm/NAME, or of another folder, exactly as locked, and prints the
# path. Runs none of their install scripts.
locked() {
  local from=${2:-$root/scripts/npm/$1} prefix=$root/target/npm/$1
  if ! cmp -s "$from/package-lock.json" "$prefix/package-lock.json" || [[ ! -d $prefix/node_modules ]]; then
    mkdir -p "$prefix" && cp "$from/package.json" "$from/package-lock.json" "$prefix"
    npm ci --silent --no-audit --no-fund --ignore-scripts --prefix "$prefix" >"$work/npm" 2>&1 ||
      { cat "$work/npm" >&2; echo "$name: npm cannot install it" >&2; return 1; }
  fi
  echo "$prefix"
}

# pinned NAME FILE: prints the path of a venv with the packages of a file, checked by hash. Recreated when the file changes.
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

# check WHAT COMMAND…: prints one line if the command succeeds, and its output if not.
check() {
  local what=$1 status; shift
  # Not in an `if`: there, `set -e` would have no effect within the command.
  set +e; (set -e; "$@") >"$work/said" 2>&1; status=$?; set -e
  if [[ $status == 0 ]]; then echo "ok: $what"; else echo "WRONG: $what"; tail -20 "$work/said" | cut -c1-400 | sed 's/^/  /'; failed=1; fi
}

# is WHAT WANTED FOUND: fails unless two texts are equal.
is() {
  [[ $2 == "$3" ]] && return
  printf '%s\n  wanted: %s\n  found:  %s\n' "$@"
  return 1
}

# has TEXT FILE: fails unless a file contains a text.
has() { grep -qF -- "$1" "$2" || { echo "no \`$1\` in:"; cat "$2"; return 1; }; }

# events FILE EXPECTED…: checks the events in a file; see events.py.
events() { python3 "$here/events.py" "$@"; }

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

# wait_for URL LOG: waits until the last started server answers. Stops if it ends, or after two minutes.
wait_for() {
  local pid=$!
  for _ in $(seq 600); do
    if curl -sf -o /dev/null "$1"; then return; fi
    kill -0 "$pid" 2>/dev/null || stop "the server ended" "$2"
    sleep 0.2
  done
  stop "the server does not answer" "$2"
}

# until_holds SECONDS COMMAND…: waits until the command succeeds.
until_holds() {
  local tries=$(($1 * 20)); shift
  for _ in $(seq "$tries"); do if "$@"; then return; fi; sleep 0.05; done
  echo "not so after $((tries / 20)) s: $*"
  return 1
}

# instance FILE NAME CLIENT_API URL: writes a provider instance that replaces the bundled one of that name.
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

# repository: makes a repository with one tool in the scratch folder, and changes to it.
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
# Permissions given by --trust are stored in the scratch folder, and removed with it.
export REQC_LIVE_KEY=no-key-at-all XDG_STATE_HOME=$work/state
