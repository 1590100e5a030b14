/** Small YAML with an endless meaning: refused at once, with line and column. */
import { describe, expect, it } from "vitest";
import { readYamlFile } from "../../src/config/yaml-file.ts";

const lines = (count: number, line: (i: number) => string) =>
  Array.from({ length: count }, (_, i) => line(i)).join("\n");
/** Each line has the one before ten times. */
const laughs = lines(
  10,
  (i) =>
    `- &a${i} [${
      i === 0
        ? "ha"
        : Array(10)
            .fill(`*a${i - 1}`)
            .join(", ")
    }]`,
);
const read = (text: string) => readYamlFile(text, "quern.yaml");

describe("aliases", () => {
  it("stand for the value of their anchor, any number of times", () => {
    const text = `- env: &env {A: "1"}\n${lines(900, (i) => `- {name: a${i}, env: *env}`)}`;
    const found = read(text);
    expect(found).toMatchObject({ value: expect.arrayContaining([{ name: "a899", env: { A: "1" } }]) });
    expect((found as { exact: unknown[] }).exact).toHaveLength(901);
  });

  it.each([
    ["ten thousand million values", laughs, /^quern\.yaml:6:\d+$/, "add more than 100000 values"],
    [
      "merge keys of merge keys",
      `%YAML 1.1\n---\n- &a0 {x: 1}\n${lines(30, (i) => `- &a${i + 1} {<<: [*a${i}, *a${i}]}`)}`,
      /:\d+:/,
      "add more than",
    ],
    ["a list inside itself", "- &a [*a]\n", /^quern\.yaml:1:7$/, "inside its own anchor"],
    ["a map inside itself", "- &a\n  x: {y: *a}\n", /^quern\.yaml:2:10$/, "inside its own anchor"],
    ["an anchor that does not exist", "- x: *nope\n", /^quern\.yaml:1:6$/, "no anchor &nope before it"],
    ["an anchor that comes later", "- *a\n- &a x\n", /^quern\.yaml:1:3$/, "no anchor &a before it"],
    [
      "a deep chain",
      `- &a0 [x]\n${lines(200, (i) => `- &a${i + 1} [*a${i}]`)}`,
      /^quern\.yaml:10\d:\d+$/,
      "deeper than 100",
    ],
    [
      "very many aliases",
      `- &a x\n${lines(1_500, () => "- *a")}`,
      /^quern\.yaml:1002:3$/,
      "more than 1000 aliases",
    ],
    ["a list as a key", "- ? [1, 2]\n  : x\n", /^quern\.yaml:1:5$/, "a key is a list or a map"],
    [
      "a map as a key, by an alias",
      "- &k {a: 1}\n- *k : x\n",
      /^quern\.yaml:2:3$/,
      "a key is a list or a map",
    ],
  ])("are refused: %s", (_, text, place, detail) => {
    expect(read(text)).toEqual([
      { pointer: expect.stringMatching(place), detail: expect.stringContaining(detail) },
    ]);
  });
});

describe("tags", () => {
  it.each([
    "!!binary aGVsbG8=",
    "!!set {a, b}",
    "!!omap [a: 1]",
    "!!python/object/apply:os.system [id]",
    "!mine x",
  ])("without an equivalent in JSON are refused: %s", (value) => {
    for (const head of ["", "%YAML 1.1\n---\n"])
      expect(read(`${head}- x: ${value}\n`)).toEqual([
        { pointer: expect.stringMatching(/:6$/), detail: expect.stringContaining("leave the tag out") },
      ]);
  });

  it("of JSON types are accepted, and a %YAML line changes no value", () => {
    expect(read('%YAML 1.1\n---\n- {a: !!str 1, b: !!int "2", c: yes, d: 012, <<: x}\n')).toMatchObject({
      value: [{ a: "1", b: 2, c: "yes", d: 12, "<<": "x" }],
    });
  });
});
