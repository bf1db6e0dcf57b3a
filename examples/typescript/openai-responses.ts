// Sends a compiled body with OpenAI's SDK, and streams the answer.
//
//   cd examples/typescript && npm ci && npx tsc
//   OPENAI_API_KEY=… node build/openai-responses.js "What is a monad?"
import OpenAI from "openai";
import { compiled } from "./compiled.js";

const history = [{ role: "user", content: process.argv[2] }];
const { body, headers } = compiled<OpenAI.Responses.ResponseCreateParamsStreaming>("Explainer", { history });
for await (const event of await new OpenAI().responses.create(body, { headers })) {
  if (event.type === "response.output_text.delta") process.stdout.write(event.delta);
}
console.log();
