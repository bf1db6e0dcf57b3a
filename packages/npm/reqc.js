#!/usr/bin/env node
// Starts the binary of this platform, which npm installs as an optional dependency of this package.
"use strict";

const { spawn } = require("node:child_process");
const packages = Object.keys(require("../package.json").optionalDependencies);

// The endings of the packages whose binary runs here, the best first: a static binary runs with any C library.
function endings() {
  const here = `${process.platform}-${process.arch}`;
  if (process.platform !== "linux") return [here];
  process.report.excludeNetwork = true;
  const isGlibc = Boolean(process.report.getReport().header.glibcVersionRuntime);
  return isGlibc ? [`${here}-gnu`, `${here}-musl`] : [`${here}-musl`];
}

function binary() {
  const file = process.platform === "win32" ? "reqc.exe" : "reqc";
  const fitting = endings().flatMap((ending) => packages.filter((name) => name.endsWith(`-${ending}`)));
  if (fitting.length === 0) {
    fail(`there is no binary for ${process.platform} on ${process.arch}; \`cargo install --locked reqc\` makes one`);
  }
  for (const name of fitting) {
    try {
      return require.resolve(`${name}/bin/${file}`);
    } catch {
      // Not installed: the next one may be.
    }
  }
  return fail(`${fitting[0]} is not installed; npm leaves it out with --omit=optional, or if package-lock.json was written without it`);
}

function fail(why) {
  console.error(`reqc: ${why}`);
  process.exit(2);
}

let child;
// Before anything is started: a signal must not leave it behind. A terminal sends Ctrl-C to the binary as well, and a second one
// would end it at once.
const hasTerminal = process.stdin.isTTY || process.stdout.isTTY || process.stderr.isTTY;
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
  process.on(signal, () => {
    if (signal !== "SIGINT" || !hasTerminal) child.kill(signal);
  });
}

child = spawn(binary(), process.argv.slice(2), { stdio: "inherit", windowsHide: true });
child.on("error", (error) => fail(`${child.spawnfile} cannot be started: ${error.message}`));
child.on("exit", (code, signal) => {
  if (signal === null) process.exit(code);
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
});
