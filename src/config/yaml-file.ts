/**
 * Reads one YAML text with the position of everything in it: values, exact integers, and `file:line:column` of any
 * path.
 */
import {
  type Document,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  type Pair,
  parseDocument,
  type Scalar,
  visit,
  type YAMLMap,
} from "yaml";
import { JsonNumber } from "../base/json/exact.ts";
import type { FieldError } from "../contracts/errors.ts";
import { CONFIG_DEPTH_MAX } from "../contracts/limits/configuration.ts";
import { aliasFault } from "./yaml-aliases.ts";
import { parseShallow } from "./yaml-depth.ts";

export type YamlPath = readonly (string | number)[];

export interface YamlFile {
  value: unknown;
  /**
   * The same with every number as JSON writes it, digit by digit. Numbers that JSON does not have keep their words
   * (`.inf`).
   */
  exact: unknown;
  /** `file:line:column` of a key or value. If that is missing, of the nearest thing around it. */
  positionOf: (path: YamlPath) => string;
}

/**
 * YAML 1.2's core schema, whatever a `%YAML` line says. No other tags are known: `!!binary`, `!!set` and the like would
 * be values that JSON does not have. Aliases are not limited here, because `aliasFault` counts them.
 */
const RULES = {
  uniqueKeys: false,
  schema: "core",
  resolveKnownTags: false,
  logLevel: "error",
  // Each error would quote its line: 16,000 errors in one line took two seconds.
  prettyErrors: false,
} as const;
const TOO_DEEP = `lists and maps are nested deeper than ${CONFIG_DEPTH_MAX}; make it flatter`;
const UNCOUNTED = { maxAliasCount: -1 };

/** The file's values and positions, or the errors of a text that is not YAML, each with its position. */
export function readYamlFile(read: string, file: string): YamlFile | FieldError[] {
  // Editors of Windows write a byte order mark, before which the parser takes a list for a text.
  const text = read.replace(/^\ufeff/, "");
  const lines = new LineCounter();
  const pairs: Pairs = new WeakMap();
  const document = parseShallow(text, CONFIG_DEPTH_MAX, { ...RULES, lineCounter: lines });
  const at = (offset: number) => {
    const { line, col } = lines.linePos(offset);
    return `${file}:${line}:${col}`;
  };
  if (typeof document === "number") return [{ pointer: at(document), detail: TOO_DEEP }];
  const alias = aliasFault(document.contents);
  if (alias !== undefined) return [{ pointer: at(alias.offset), detail: alias.detail }];
  const errors = [
    ...document.warnings
      .filter(({ code }) => code === "TAG_RESOLVE_FAILED")
      .map(({ message, pos }) => ({
        pointer: at(pos[0]),
        detail: `${message.split(" at line ")[0]!}; leave the tag out`,
      })),
    ...document.errors.map((error) => ({
      pointer: at(error.pos[0]),
      detail: error.message.split(" at line ")[0]!,
    })),
    ...duplicateKeys(document).map(({ name, first, again }) => ({
      pointer: at(again),
      detail: `the key "${name}" is given twice, here and in line ${lines.linePos(first).line}; keep one of them`,
    })),
  ];
  if (errors.length > 0) return errors;
  return {
    value: document.toJS(UNCOUNTED),
    // Parsed again, only if a caller needs it.
    get exact() {
      const again = parseDocument(text, { ...RULES, intAsBigInt: true });
      visit(again, { Scalar: keepNumber });
      return again.toJS(UNCOUNTED);
    },
    positionOf: (path) => at(offsetOf(document, path, pairs)),
  };
}

/** Keys that one map has more than once: the positions of the first and of each later one. */
function duplicateKeys(document: Document): { name: string; first: number; again: number }[] {
  const found: { name: string; first: number; again: number }[] = [];
  visit(document, {
    Map: (_key, { items }) => {
      const seen = new Map<string, number>();
      for (const { key } of items) {
        if (!isScalar(key)) continue;
        const name = String(key.value);
        const place = (key as Scalar).range![0];
        const first = seen.get(name);
        if (first === undefined) seen.set(name, place);
        else found.push({ name, first, again: place });
      }
    },
  });
  return found;
}

function keepNumber(key: unknown, node: Scalar): void {
  const { value, source } = node;
  if (typeof value !== "bigint" && typeof value !== "number") return;
  const text = typeof value === "bigint" ? String(value) : jsonFloat(source ?? String(value));
  // The names of members are texts.
  node.value = key === "key" ? (source ?? text) : new JsonNumber(text);
}

/** `+.5`, `1.` and `007.5` are floats in YAML. JSON needs digits on both sides of the point, and no plus. */
function jsonFloat(source: string): string {
  const parts = /^([-+]?)0*(\d*)(?:\.(\d*))?(e[-+]?\d+)?$/i.exec(source);
  if (parts === null) return source;
  const [, sign, whole, fraction, exponent] = parts;
  const point = fraction === undefined ? "" : `.${fraction || "0"}`;
  return `${sign === "-" ? "-" : ""}${whole || "0"}${point}${exponent ?? ""}`;
}

/** The pairs of each map by name: a file may have a hundred thousand errors in one map. */
type Pairs = WeakMap<YAMLMap, Map<string, Pair>>;

/** The position of the last thing on a path, or of the nearest thing around it. */
function offsetOf(document: Document, path: YamlPath, pairs: Pairs): number {
  let node: unknown = document.contents;
  let offset = 0;
  for (const part of path) {
    const pair = isMap(node) ? pairsOf(node, pairs).get(String(part)) : undefined;
    const item = isSeq(node) ? node.items[Number(part)] : pair?.value;
    const located = (pair?.key ?? item) as Node | undefined;
    if (!located?.range) return offset;
    offset = located.range[0];
    node = item;
  }
  return offset;
}

function pairsOf(map: YAMLMap, known: Pairs): Map<string, Pair> {
  let pairs = known.get(map);
  if (pairs === undefined) {
    pairs = new Map();
    for (const pair of map.items) {
      const name = String((pair.key as { value?: unknown } | null)?.value);
      if (!pairs.has(name)) pairs.set(name, pair);
    }
    known.set(map, pairs);
  }
  return pairs;
}
