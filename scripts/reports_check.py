"""Checks reports with tools of others. Usage: reports_check.py REQC FOLDER [SARIF_SCHEMA]; see scripts/reports-check."""

import json
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

import jsonschema
import junitparser
from markdown_it import MarkdownIt

FORMATS = ["json", "sarif", "github", "gitlab", "junit", "markdown"]
TEXTS = [
    "`` ` ```", "a | b", "</details><script>alert(1)</script>", "@octocat #1", "::error file=x::y", "]]></failure><x>",
    "[x](javascript:alert(1))", "![i](https://evil.example/i.png)", "##[error]x", "%0A::set-output name=a::b",
    "\u001b[2J\r\u202e", "<!-- -->", "{0} {{x}}", "\ufffe", "é 漢字 🙂", "https://evil.example/", "~~~", "    ```",
]
MARKED = re.compile(r"<details( open)?><summary><code>[a-z/-]+</code>: \d+ (error|warning)s?</summary>|</details>")


def repository(folder: Path) -> None:
    """Writes agents that hold each hostile text in a name, in a key, in a value and in a path."""
    (folder / "agents").mkdir(parents=True)
    (folder / ".git").mkdir()
    for number, text in enumerate(TEXTS):
        quoted = json.dumps(text, ensure_ascii=True)
        agent = f'name = {quoted}\nextends = "OpenAI Chat"\n{quoted} = 1\n[body]\nx = {quoted}\ntemperatur = 1\n'
        safe = re.sub(r"[/\x00\\]", "_", text)
        for name in (f"{number}.toml", f"{number} {safe}.toml"):
            try:
                (folder / "agents" / name).write_text(agent.replace("name = ", f"name = {json.dumps(name)} # ", 1)
                                                      if name != f"{number}.toml" else agent)
            except (OSError, UnicodeEncodeError):
                pass
    for number in range(300):
        (folder / f"agents/many{number}.toml").write_text(f'name = "M{number}"\nextends = "OpenAI Caht"\n')


def check_sarif(text: str, schema: str) -> None:
    document = json.loads(text)
    if schema:
        validator = jsonschema.Draft7Validator(json.loads(Path(schema).read_text()))
        errors = [f"{list(error.absolute_path)}: {error.message[:200]}" for error in validator.iter_errors(document)]
        assert not errors, errors[:5]
    (run,) = document["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    prints = [result["partialFingerprints"]["reqc/v1"] for result in run["results"]]
    assert len(set(prints)) == len(prints) > 300, "fingerprints tell findings apart"
    assert any(result.get("fixes") for result in run["results"])
    for result in run["results"]:
        assert rules[result["ruleIndex"]] == result["ruleId"]
        for location in result["locations"] + result.get("relatedLocations", []):
            artifact = location["physicalLocation"]["artifactLocation"]
            parts = urlsplit(artifact["uri"])
            assert not parts.scheme and not parts.netloc and not parts.query and not parts.fragment, artifact
            assert artifact["uriBaseId"] in run["originalUriBaseIds"]
            assert unquote(artifact["uri"]).startswith(("team/agents/", "agents/")), artifact
        message = result["message"]["text"]
        assert not re.search(r"(?<!\\)\[[^\]]*(?<!\\)\]\(", message), message


def check_junit(path: Path, findings: int) -> None:
    suites = junitparser.JUnitXml.fromfile(str(path))
    cases = [case for suite in suites for case in suite]
    assert len(cases) == findings + 1 and suites.tests == findings + 1
    failed = sum(1 for case in cases if any(isinstance(it, junitparser.Failure) for it in case.result))
    assert failed == suites.failures > 300


def check_gitlab(text: str) -> None:
    issues = json.loads(text)
    prints = [issue["fingerprint"] for issue in issues]
    assert len(set(prints)) == len(prints)
    for issue in issues:
        assert set(issue) == {"description", "check_name", "fingerprint", "severity", "location"}
        assert issue["severity"] in {"info", "minor", "major", "critical", "blocker"}
        assert issue["location"]["lines"]["begin"] >= 1 and issue["location"]["path"]


def check_markdown(text: str) -> None:
    assert len(text.encode("utf-16-le")) // 2 < 60_000
    for token in MarkdownIt("commonmark", {"html": True}).enable("table").parse(text):
        if token.type in {"heading_open", "heading_close", "fence", "paragraph_open", "paragraph_close"}:
            continue
        if token.type == "html_block":
            assert all(MARKED.fullmatch(line) for line in token.content.splitlines() if line), token.content
            continue
        assert token.type == "inline", token
        assert re.fullmatch(r"reqc: \d+ errors(, \d+ warnings)?|… and [\d,]+ more findings: `reqc check` shows all\.", token.content)


def check_github(text: str) -> None:
    commands = [line for line in text.splitlines() if line.lstrip().startswith("::")]
    form = re.compile(r"::(error|warning|notice) ((?:[a-zA-Z]+=[^,:\r\n]*,?)+)::(.*)")
    levels = []
    for line in commands:
        match = form.fullmatch(line)
        assert match, line
        levels.append(match[1])
        keys = [pair.split("=", 1)[0] for pair in match[2].split(",")]
        assert set(keys) <= {"file", "line", "endLine", "col", "endColumn", "title"}, keys
    assert levels.count("error") <= 10 and levels.count("warning") <= 10 and levels.count("notice") == 1, levels


def main() -> None:
    reqc, work, schema = sys.argv[1], Path(sys.argv[2]), (sys.argv[3:] + [""])[0]
    repository(work / "team")
    (work / ".git").mkdir()
    (work / "team/.git").rmdir()
    arguments = [part for name in FORMATS for part in ("--format", f"{name}={work}/report.{name}")]
    ran = subprocess.run([reqc, "-C", str(work / "team"), "check", "-q", *arguments], capture_output=True, text=True)
    assert ran.returncode == 1, ran.stderr
    texts = {name: (work / f"report.{name}").read_bytes().decode() for name in FORMATS}
    for name, text in texts.items():
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202e]|##\[", text), name
    check_sarif(texts["sarif"], schema)
    check_junit(work / "report.junit", len(json.loads(texts["json"])["diagnostics"]))
    check_gitlab(texts["gitlab"])
    check_markdown(texts["markdown"])
    check_github(texts["github"])
    print(f"reports: {', '.join(FORMATS)} of {len(json.loads(texts['json'])['diagnostics'])} findings are right")


main()
