import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

const repository = fileURLToPath(new URL("../../", import.meta.url));

/** The members of a context other than its history: tools, attached files, the language. */
export type Conversation = { history: object[]; tools?: object[]; files?: object[]; language?: string };

/** Returns the body of an agent's request as its SDK's type, and its headers without the key. */
export function compiled<Body>(agent: string, conversation: Conversation): { body: Body; headers: Record<string, string> } {
  const options = ["-C", repository, "render", agent, "--context", "-", "--format", "json"];
  const made = spawnSync("reqc", options, { input: JSON.stringify(conversation), encoding: "utf8", maxBuffer: 1 << 30 });
  if (made.status !== 0) throw made.error ?? new Error(made.stderr);
  const request: { body: Body; headers: Record<string, string> } = JSON.parse(made.stdout);
  const headers = Object.entries(request.headers).filter(([, value]) => !value.includes("${"));
  return { body: request.body, headers: Object.fromEntries(headers) };
}
