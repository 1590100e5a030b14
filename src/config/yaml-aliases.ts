/**
 * Finds what a YAML document becomes when its aliases are followed, without following them. Ten lines of ten aliases
 * each are ten thousand million values, and an alias inside its own anchor is an endless list. Pure; visits each node
 * once.
 */
import { isAlias, isCollection, isPair, isScalar, type Node } from "yaml";
import { CONFIG_DEPTH_MAX, YAML_ALIASES_MAX, YAML_COPIES_MAX } from "../contracts/limits/configuration.ts";

export interface YamlFault {
  /** The position, as an offset in the text. */
  offset: number;
  detail: string;
}

/** The size of a value with everything that aliases bring into it. */
interface Extent {
  values: number;
  depth: number;
}

const ONE: Extent = { values: 1, depth: 0 };

/** The first fault of the document's aliases and keys; undefined if there is none. */
export function aliasFault(contents: unknown): YamlFault | undefined {
  return new AliasWalk().check(contents);
}

class AliasWalk {
  /** By anchor; undefined while the walk is inside it. */
  private readonly anchors = new Map<string, Extent | undefined>();
  private aliases = 0;
  /** Values that aliases have brought in. */
  private copies = 0;
  private fault: YamlFault | undefined;

  check(contents: unknown): YamlFault | undefined {
    this.extentOf(contents);
    return this.fault;
  }

  private extentOf(node: unknown): Extent {
    if (this.fault !== undefined) return ONE;
    if (isAlias(node)) return this.ofAlias(node);
    if (isPair(node)) return this.ofPair(node);
    const anchor = isCollection(node) || isScalar(node) ? node.anchor : undefined;
    if (anchor !== undefined) this.anchors.set(anchor, undefined);
    const extent = isCollection(node) ? this.ofItems(node.items, node) : ONE;
    if (anchor !== undefined) this.anchors.set(anchor, extent);
    return extent;
  }

  private ofItems(items: readonly unknown[], node: unknown): Extent {
    const sum = { values: 1, depth: 0 };
    for (const item of items) {
      const { values, depth } = this.extentOf(item);
      sum.values += values;
      sum.depth = Math.max(sum.depth, depth + 1);
    }
    if (sum.depth > CONFIG_DEPTH_MAX)
      this.add(
        node,
        `lists and maps are nested deeper than ${CONFIG_DEPTH_MAX}, including those from aliases; make it flatter`,
      );
    return sum;
  }

  private ofPair({ key, value }: { key: unknown; value: unknown }): Extent {
    if (isCollection(key)) this.add(key, "a key is a list or a map; use a string");
    const ofKey = this.extentOf(key);
    const ofValue = this.extentOf(value);
    if (ofKey.depth > 0) this.add(key, "a key is a list or a map; use a string");
    return { values: ofKey.values + ofValue.values, depth: ofValue.depth };
  }

  private ofAlias(alias: Node & { source: string }): Extent {
    const { source } = alias;
    const extent = this.anchors.get(source);
    if (extent === undefined) {
      const isOpen = this.anchors.has(source);
      this.add(
        alias,
        isOpen
          ? `the alias *${source} is inside its own anchor, so it would never end`
          : `the alias *${source} has no anchor &${source} before it`,
      );
      return ONE;
    }
    this.aliases++;
    this.copies += extent.values;
    if (this.aliases > YAML_ALIASES_MAX)
      this.add(alias, `there are more than ${YAML_ALIASES_MAX} aliases; write values out, or split the file`);
    if (this.copies > YAML_COPIES_MAX)
      this.add(
        alias,
        `aliases add more than ${YAML_COPIES_MAX} values to the document; put large values into a file of the project, and give its path`,
      );
    return extent;
  }

  private add(node: unknown, detail: string): void {
    this.fault ??= { offset: (node as Node | null)?.range?.[0] ?? 0, detail };
  }
}
