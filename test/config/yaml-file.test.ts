/** Texts that the YAML parser itself cannot read. */
import { expect, it } from "vitest";
import { readYamlFile } from "../../src/config/yaml-file.ts";

it.each([
  ["lists in one line", (depth: number) => "- ".repeat(depth)],
  ["brackets", (depth: number) => "[".repeat(depth)],
  ["maps in braces", (depth: number) => "{a: ".repeat(depth)],
  ["keys that are lists", (depth: number) => `- ${"? - ".repeat(depth)}`],
  ["lists after a text", (depth: number) => `- kind: >-\n    Batch\n ${"- ".repeat(depth)}`],
])("%s that are nested too deep are refused, at any depth", (_, nested) => {
  for (const depth of [101, 2_000, 3_000, 5_000, 20_000])
    expect(readYamlFile(nested(depth), "quern.yaml")).toEqual([
      {
        pointer: expect.stringMatching(/^quern\.yaml(:\d+:\d+)?$/),
        detail: "lists and maps are nested deeper than 100; make it flatter",
      },
    ]);
});
