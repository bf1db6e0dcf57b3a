// Sends compiled bodies with Anthropic's SDK, with a tool in a loop.
//
//   cd examples/typescript && npm ci && npx tsc
//   ANTHROPIC_API_KEY=… node build/claude.js "What is 6 times 7?"
import Anthropic from "@anthropic-ai/sdk";
import { compiled } from "./compiled.js";

const tool = {
  name: "multiply",
  description: "Multiplies two numbers.",
  schema: { type: "object", properties: { a: { type: "number" }, b: { type: "number" } }, required: ["a", "b"] },
};

/** Converts a block of the answer to one of a context; blocks that contexts have no name for are sent back unchanged. */
function blockOf(block: Anthropic.ContentBlock): object {
  switch (block.type) {
    case "text":
      return { type: "text", text: block.text };
    case "thinking":
      return { type: "thinking", thinking: block.thinking, signature: block.signature };
    case "tool_use":
      return { type: "tool_use", id: block.id, name: block.name, input: block.input };
    default:
      return { type: "provider_block", origin: "Claude", data: block };
  }
}

function resultOf(call: Anthropic.ToolUseBlock): object {
  const { a, b } = call.input as { a: number; b: number };
  return { type: "tool_result", tool_use_id: call.id, content: String(a * b) };
}

const client = new Anthropic();
const history: object[] = [{ role: "user", content: process.argv[2] }];
for (;;) {
  const { body, headers } = compiled<Anthropic.MessageStreamParams>("Calculator", { history, tools: [tool] });
  const stream = client.messages.stream(body, { headers });
  stream.on("text", (text) => process.stdout.write(text));
  const answer = await stream.finalMessage();
  history.push({ role: "assistant", content: answer.content.map(blockOf) });
  const calls = answer.content.filter((block) => block.type === "tool_use");
  if (calls.length === 0) break;
  history.push({ role: "user", content: calls.map(resultOf) });
}
console.log();
