/** Texts that are nested so deep that the parser would come to the end of its stack, where V8 may end the process. */
import { expect, it } from "vitest";
import { readYamlFile } from "../../src/config/yaml-file.ts";

const DEPTHS = [101, 500, 2_000, 5_000, 20_000];
const read = (text: string) => readYamlFile(text, "quern.yaml");
/** Each line is indented by one more space: a thousand of them are half a megabyte. */
const inLines =
  (item: string, indent = " ") =>
  (depth: number) =>
    Array.from({ length: Math.min(depth, 1_000) }, (_, line) => `${indent.repeat(line)}${item}`).join("\n");

it.each<[string, (depth: number) => string]>([
  ["lists in one line", (depth) => "- ".repeat(depth)],
  ["lists in lines of their own", inLines("-")],
  ["lists after a text", (depth) => `- kind: >-\n    Batch\n ${"- ".repeat(depth)}`],
  ["brackets", (depth) => "[".repeat(depth)],
  ["brackets that are closed", (depth) => "[".repeat(depth) + "]".repeat(depth)],
  ["maps in braces", (depth) => "{a: ".repeat(depth)],
  ["maps in lines of their own", inLines("a:")],
  ["keys that are lists", (depth) => `- ${"? - ".repeat(depth)}`],
  ["keys of keys", (depth) => "? ".repeat(depth)],
  ["values of values", (depth) => ": ".repeat(depth)],
  ["lists of maps", (depth) => "- ? ".repeat(depth)],
])("%s that are nested too deep are refused, with their place", (_, nested) => {
  for (const depth of DEPTHS)
    expect(read(nested(depth))).toEqual([
      {
        pointer: expect.stringMatching(/^quern\.yaml:\d+:\d+$/),
        detail: "lists and maps are nested deeper than 100; make it flatter",
      },
    ]);
});

it.each<[string, string]>([
  ["99 lists in one line", `${"- ".repeat(99)}1`],
  ["maps in 99 lines", `${inLines("a:")(99)} 1`],
  ["lists of maps in lines", `${inLines("- a:", "   ")(49)} 1`],
  ["99 brackets", `${"[".repeat(99)}${"]".repeat(99)}`],
  ["a text that looks like lists", `a: |\n  ${"- ".repeat(2_000)}${"[".repeat(2_000)}\n`],
  ["many anchors and tags", `${"- &a !!str x\n".repeat(2_000)}`],
])("%s are read", (_, text) => {
  expect(read(text)).toMatchObject({ value: expect.anything() });
});

it("a byte order mark is ignored", () => {
  expect(read("\ufeff- name: a\n  kind: b\n")).toMatchObject({ value: [{ name: "a", kind: "b" }] });
});

it("several documents are refused at the second", () => {
  expect(read("a: 1\n---\nb: 2\n")).toEqual([
    { pointer: "quern.yaml:2:1", detail: "the file has several documents; keep one of them" },
  ]);
});
