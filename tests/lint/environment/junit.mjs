// Usage: node junit.mjs SCHEMA FILE
//
// Reads a JUnit file as programs in JavaScript do, and validates it with libxml2. Prints JSON: the
// counts that each reader comes to, and what the schema forbids.
import fs from "node:fs";
import { parse } from "junit2json";
import reader from "test-results-parser";
import { validateXML } from "xmllint-wasm";

const [schema, file] = process.argv.slice(2);
const contents = fs.readFileSync(file, "utf8");

const cases = ((await parse(contents))?.testsuite ?? []).flatMap((suite) => suite.testcase ?? []);
const result = reader.parse({ type: "junit", files: [file] });
const checked = await validateXML({
  xml: [{ fileName: "junit.xml", contents }],
  schema: [{ fileName: "junit.xsd", contents: fs.readFileSync(schema, "utf8") }],
});

console.log(
  JSON.stringify({
    junit2json: {
      tests: cases.length,
      failures: cases.filter((one) => one.failure?.length).length,
      errors: cases.filter((one) => one.error?.length).length,
    },
    "test-results-parser": {
      tests: result.total,
      failures: result.failed,
      errors: result.errors,
    },
    forbidden: checked.errors.map((error) => error.message),
  }),
);
