"""Builds, installs and tries what is published. Usage: package_check.py FOLDER [ACTIONLINT]; see scripts/package-check."""

import base64
import hashlib
import http.server
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import threading
import zipfile
from email.parser import Parser
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SHARE = ROOT / "reqc.data/data/share"
COMPLETIONS = ["bash-completion/completions/reqc", "zsh/site-functions/_reqc", "fish/vendor_completions.d/reqc.fish"]
LICENCES = ["LICENSE-APACHE", "LICENSE-MIT"]
# The environment without the user's settings and those of CI.
CLEAN = {name: os.environ[name] for name in ["PATH", "HOME", "LANG", "TMPDIR"] if name in os.environ}
# Messages about syntax that the pinned actionlint does not know yet.
NEWER = re.compile(r'^label ".*" is unknown|^unknown permission scope "attestations"')


def main() -> None:
    work = Path(sys.argv[1])
    actionlint = Path(sys.argv[2]) if len(sys.argv) > 2 and sys.argv[2] else None
    read_workflows(actionlint)
    reqc, version = release_build()
    wheel = build_wheel(work)
    check_wheel(wheel, reqc, version)
    try_wheel(wheel, work, version)
    check_sdist(work)
    if actionlint:
        try_npm(reqc, work, version)
    try_crate(work, version)


def run(*command: object, cwd: Path = ROOT, env: dict | None = None, status: int = 0, stdin: str | None = None) -> str:
    """What a command writes; fails unless it ends with the status."""
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=cwd, env=env, input=stdin, capture_output=True, text=True, timeout=3600)
    assert done.returncode == status, f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout if status == 0 else done.stdout + done.stderr


def ok(what: str) -> None:
    print(f"ok: {what}", flush=True)


def release_build() -> tuple[Path, str]:
    """The release binary and its version; writes its manual pages and completion scripts."""
    run("cargo", "build", "--locked", "--release")
    reqc = ROOT / "target/release/reqc"
    shutil.rmtree(SHARE.parent.parent, ignore_errors=True)
    run("scripts/share", reqc, SHARE)
    crate = json.loads(run("cargo", "metadata", "--locked", "--no-deps", "--format-version", "1"))["packages"][0]
    return reqc, crate["version"]


def build_wheel(work: Path) -> Path:
    run("maturin", "build", "--release", "--locked", "--out", work / "wheels")
    (wheel,) = (work / "wheels").glob("*.whl")
    return wheel


def check_wheel(wheel: Path, reqc: Path, version: str) -> None:
    """What is in the wheel, and what it says of itself."""
    with zipfile.ZipFile(wheel) as archive:
        info, data = f"reqc-{version}.dist-info", f"reqc-{version}.data"
        names = set(archive.namelist())
        wanted = [f"{info}/licenses/{name}" for name in LICENCES] + [f"{info}/sboms/reqc.cyclonedx.json"]
        wanted += [f"{data}/data/share/{name}" for name in [*COMPLETIONS, "man/man1/reqc.1", "man/man1/reqc-check.1"]]
        assert names.issuperset(wanted), set(wanted) - names
        assert archive.read(f"{data}/scripts/reqc") == reqc.read_bytes(), "the wheel holds another binary"
        metadata = Parser().parsestr(archive.read(f"{info}/METADATA").decode())
        sbom = json.loads(archive.read(f"{info}/sboms/reqc.cyclonedx.json"))
    assert (metadata["Name"], metadata["Version"]) == ("reqc", version), metadata
    assert metadata["License-Expression"] == "MIT OR Apache-2.0", metadata
    # The address of the project, if Cargo.toml has one.
    has_address = re.search(r"^repository =", (ROOT / "Cargo.toml").read_text(), flags=re.MULTILINE) is not None
    assert bool(metadata.get_all("Project-URL")) == has_address, metadata
    assert metadata.get_all("Classifier") and "reqc check" in metadata.get_payload()
    components = {component["name"] for component in sbom["components"]}
    assert sbom["bomFormat"] == "CycloneDX" and {"minijinja", "rustls", "serde_json"} <= components, components
    ok(f"{wheel.name}: the release binary, pages, scripts, licences, {len(components)} components in the bill of materials")


def try_wheel(wheel: Path, work: Path, version: str) -> None:
    venv = work / "venv"
    run(sys.executable, "-m", "venv", venv)
    before = files(venv)
    pip = [venv / "bin/pip", "--disable-pip-version-check", "--quiet"]
    run(*pip, "install", "--no-index", wheel)
    try_program([venv / "bin/reqc"], work / "by pip", version)
    try_share(venv / "share")
    run(*pip, "uninstall", "--yes", "reqc")
    left = {path for path in files(venv) - before if "__pycache__" not in path}
    assert not left, left
    ok("pip installs it into a clean environment, and removes all of it")


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def try_program(command: list, work: Path, version: str) -> None:
    """The program as it was installed: versions, exit status, findings."""
    assert run(*command, "--version", env=CLEAN) == f"reqc {version}\n"
    run(*command, "init", work, env=CLEAN)
    assert "no findings" in run(*command, "check", cwd=work, env=CLEAN)
    run(*command, "compile", "--check", cwd=work, env=CLEAN)
    (work / "agents/wrong.toml").write_text('name = "Wrong"\nextends = "OpenAI Caht"\n')
    said = run(*command, "check", "--format", "short", cwd=work, env=CLEAN, status=1)
    assert "agents/wrong.toml:2:" in said and "OpenAI Chat" in said, said
    run(*command, "no-such-command", env=CLEAN, status=2)
    said = run(*command, "lint", "-", "--wire", "openai-chat", env=CLEAN, status=1, stdin='{"model": "m", "messages": 1}')
    assert "1 body" in said, said


def try_share(share: Path) -> None:
    """Manual pages that `man` shows, where it is there, and completion scripts that complete."""
    page = share / "man/man1/reqc-compile.1"
    assert ".SH OPTIONS" in page.read_text() and "no\\-merge\\-base" in page.read_text()
    if shutil.which("man") and subprocess.run(["man", "--version"], capture_output=True).stdout.startswith(b"man "):
        assert "golden" in run("man", "-l", page, env={**CLEAN, "MANWIDTH": "100"})
    complete = 'source "$1"; COMP_WORDS=(reqc comp) COMP_CWORD=1; _reqc reqc comp reqc; echo "${COMPREPLY[@]}"'
    said = run("bash", "-c", complete, "bash", share / COMPLETIONS[0], env=CLEAN).split()
    assert said == ["compile", "compare", "completions"], said
    assert (share / COMPLETIONS[1]).read_text().startswith("#compdef reqc")
    assert "complete -c reqc" in (share / COMPLETIONS[2]).read_text()


def check_sdist(work: Path) -> None:
    run("maturin", "sdist", "--out", work / "sdist")
    (path,) = (work / "sdist").glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    wanted = ["Cargo.lock", "pyproject.toml", "packages/README.md", "build/main.rs", "src/main.rs", "model-families.toml"]
    wanted += [*LICENCES, "reqc.data/data/share/man/man1/reqc.1"]
    assert names.issuperset(wanted), set(wanted) - names
    ok(f"{path.name}: holds what a build needs")


def try_npm(reqc: Path, work: Path, version: str) -> None:
    """A registry on this machine, with packages for all platforms; those of others hold no binary."""
    other = work / "other"
    other.write_text("#!/bin/sh\necho wrong platform\n")
    here = f"{platform.machine()}-unknown-linux-gnu"
    targets = re.findall(r"- target: (\S+)", (ROOT / ".github/workflows/release.yml").read_text())
    binaries = [f"{target}={reqc if target == here else other}" for target in targets]
    folders = run("scripts/npm-packages", "--share", SHARE, "--out", work / "npm", *binaries).split("\n")[:-1]
    (work / "packed").mkdir()
    with Registry([pack(Path(folder), work / "packed") for folder in folders]) as url:
        npm = ["npm", "--registry", url, "--cache", work / "npm-cache", "--no-audit", "--no-fund", "--no-update-notifier"]
        env = {**CLEAN, "NO_PROXY": "127.0.0.1", "npm_config_userconfig": os.devnull}
        prefix = work / "prefix"
        run(*npm, "install", "--global", "--prefix", prefix, f"reqc@{version}", env=env)
        assert run(*npm, "exec", "--yes", "reqc", "--", "--version", cwd=work, env=env) == f"reqc {version}\n"
    try_program([prefix / "bin/reqc"], work / "by npm", version)
    installed = prefix / "lib/node_modules/reqc"
    platforms = [path for path in prefix.rglob("@reqc/*") if path.is_dir()]
    assert len(platforms) == 1 and files(platforms[0]) >= {"bin/reqc", *LICENCES}, platforms
    assert files(installed) >= {f"completions/{name}" for name in COMPLETIONS} | set(LICENCES)
    if shutil.which("man"):
        assert (prefix / "share/man/man1/reqc.1").exists(), "npm links manual pages"
    try_signals(prefix / "bin/reqc")
    shutil.rmtree(platforms[0])
    assert "is not installed" in run(prefix / "bin/reqc", "--version", env=CLEAN, status=2)
    ok(f"npm installs it into a clean prefix, and of {len(targets)} platforms this one's binary alone; npx starts it")


def pack(folder: Path, out: Path) -> tuple[dict, bytes]:
    """What the registry says of a package, and its archive."""
    (packed,) = json.loads(run("npm", "pack", "--json", "--pack-destination", out, folder, env=CLEAN))
    archive = (out / Path(packed["filename"]).name).read_bytes()
    package = json.loads((folder / "package.json").read_text())
    digest = base64.b64encode(hashlib.sha512(archive).digest()).decode()
    return {**package, "dist": {"integrity": f"sha512-{digest}"}}, archive


class Registry:
    """An npm registry on this machine that knows a few packages."""

    def __init__(self, packages: list[tuple[dict, bytes]]) -> None:
        answers: dict[str, bytes] = {}

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = answers.get(self.path.replace("%2f", "/").replace("%2F", "/"))
                self.send_response(404 if body is None else 200)
                self.end_headers()
                self.wfile.write(body or b"{}")

            def log_message(self, *_: object) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        for package, archive in packages:
            name, version = package["name"], package["version"]
            package["dist"]["tarball"] = f"{self.url}/{name}/-/package.tgz"
            answers[f"/{name}"] = json.dumps(
                {"name": name, "dist-tags": {"latest": version}, "versions": {version: package}}
            ).encode()
            answers[f"/{name}/-/package.tgz"] = archive

    def __enter__(self) -> str:
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self.url

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()


def try_signals(command: Path) -> None:
    """A signal ends the binary and then its launcher, which tells how."""
    for number in [signal.SIGTERM, signal.SIGINT]:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        with subprocess.Popen([command, "lint", "-"], env=CLEAN, **pipes) as started:
            child = child_of(started)
            started.send_signal(number)
            status = started.wait(timeout=60)
            is_left = Path(f"/proc/{child}").exists()
            started.stdin.close()
        assert (status, is_left) == (-number, False), (number, status, is_left)


def child_of(started: subprocess.Popen) -> int:
    """The binary that the launcher starts."""
    for _ in range(200):
        children = Path(f"/proc/{started.pid}/task/{started.pid}/children").read_text().split()
        for child in children:
            if os.readlink(f"/proc/{child}/exe").endswith("/bin/reqc"):
                return int(child)
        threading.Event().wait(0.05)
    started.kill()
    raise AssertionError("the launcher starts nothing")


def try_crate(work: Path, version: str) -> None:
    """The crate compiles from what is published alone. Its dependencies are those that are compiled already."""
    run("cargo", "package", "--locked", "--allow-dirty", "--no-verify", "--quiet")
    with tarfile.open(ROOT / f"target/package/reqc-{version}.crate") as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
        archive.extractall(work / "crate", filter="data")
    assert names >= {*LICENCES, "Cargo.lock", "README.md", "CHANGELOG.md", "docs/install.md"}, names
    folder = work / f"crate/reqc-{version}"
    run("cargo", "check", "--locked", "--offline", "--quiet", "--target-dir", ROOT / "target", cwd=folder)
    ok(f"reqc-{version}.crate: compiles from its {len(names)} files")


def read_workflows(actionlint: Path | None) -> None:
    """The workflows, the action and the container file, as linters see them."""
    workflows, configuration = sorted((ROOT / ".github/workflows").glob("*.yml")), ROOT / ".github/zizmor.yml"
    run("zizmor", "--offline", "--no-progress", "--config", configuration, *workflows, ROOT / "action.yml")
    run("hadolint", ROOT / "Containerfile")
    for workflow in workflows if actionlint else []:
        program = "import('actionlint').then(async ({ createLinter }) => console.log(JSON.stringify(" \
            "(await createLinter())(require('fs').readFileSync(process.argv[1], 'utf8'), process.argv[1]))))"
        found = json.loads(run("node", "-e", program, workflow, cwd=actionlint))
        wrong = [f"{workflow.name}:{one['line']}: {one['message']}" for one in found if not NEWER.match(one["message"])]
        assert not wrong, wrong
    ok("the workflows, the action and the container file, read by linters")


if __name__ == "__main__":
    main()
