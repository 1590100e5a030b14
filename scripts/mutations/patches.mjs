/** The breakages in test/mutations/: a head of `Field: value` lines, a line `---`, and a diff with one line of context. */
import { readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { root } from "../setup.mjs";

const DIRECTORY = join(root, "test", "mutations");
const FIELD = /^(Guarantee|Breaks|Red): (.+)$/;

/** Those whose names begin with one of `prefixes`, or all if there is none. */
export function readPatches(prefixes) {
  const patches = readdirSync(DIRECTORY)
    .filter((name) => name.endsWith(".patch"))
    .filter((name) => prefixes.length === 0 || prefixes.some((prefix) => name.startsWith(prefix)))
    .sort()
    .map((name) => readPatch(join(DIRECTORY, name)));
  if (patches.length === 0) throw new Error(`test/mutations/ has no breakage of this name: ${prefixes}`);
  return patches;
}

function readPatch(file) {
  const text = readFileSync(file, "utf8");
  const head = parseHead(file, text);
  const touches = [...text.matchAll(/^\+\+\+ b\/(.+)$/gm)].map((match) => match[1]);
  if (touches.length === 0) throw new Error(`${file} changes no file`);
  return { name: basename(file, ".patch"), file, touches, ...head };
}

/** `Red` may stand several times: a file, ` > `, and the test's name with those of its describes, as vitest shows it. */
export function parseHead(file, content) {
  const text = content.split(/^---$/m)[0];
  const fields = text
    .split("\n")
    .filter(Boolean)
    .map((line) => FIELD.exec(line) ?? fail(file, line));
  const all = (name) => fields.filter((field) => field[1] === name).map((field) => field[2]);
  const [guarantee] = all("Guarantee");
  const [breaks] = all("Breaks");
  const red = all("Red");
  if (guarantee === undefined || breaks === undefined || red.length === 0)
    fail(file, "Guarantee, Breaks and Red are needed");
  for (const test of red) if (!test.includes(" > ")) fail(file, test);
  return { text, guarantee: Number(guarantee), breaks, red };
}

function fail(file, what) {
  throw new Error(`${file}: cannot be read: ${what}`);
}
