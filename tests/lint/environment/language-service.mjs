// Usage: node language-service.mjs FILE...
//
// Checks action metadata and workflows as GitHub's own editor service does. A line on stdout for
// each finding; exit code 1 where there is one.
import fs from "node:fs";
import { register } from "node:module";
import path from "node:path";

// The service imports JSON without saying so, which Node refuses unless it is told.
const hook = `export const load = (url, context, next) =>
  next(url, url.endsWith(".json") ? { ...context, importAttributes: { type: "json" } } : context);`;
register("data:text/javascript," + encodeURIComponent(hook));

const { validate } = await import("@actions/languageservice");
const { TextDocument } = await import("vscode-languageserver-textdocument");

let found = 0;
for (const file of process.argv.slice(2)) {
  const text = fs.readFileSync(file, "utf8");
  const uri = "file://" + path.resolve(file);
  for (const { range, message } of await validate(TextDocument.create(uri, "yaml", 1, text), {})) {
    console.log(`${file}:${range.start.line + 1}:${range.start.character + 1}: ${message}`);
    found++;
  }
}
process.exit(found ? 1 : 0);
