/**
 * The citations in comments and pages: files, anchors of pages, tests of the contract, and documents that this
 * repository lacks. Pure except `Pages`, which reads the cited pages once.
 */
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** A path of this repository, perhaps with an anchor: `docs/contract/jobs.md#stop`, `batch/letters/letters.ts`. */
const PATH = /(?<![\w./-])([\w.-]+\/[\w./-]*\.(?:ts|mjs|py|md))\b(?:#([\w-]+))?/g;
/** The target of a Markdown link that stays in the repository: `[how](../decisions/0002-x.md#why)`, `[here](#why)`. */
const LINK = /\]\(([^)#:\s]*)(?:#([\w-]+))?\)/g;
/** A rule of the contract, and the lines below it that name its tests. */
const RULE = /^- <a id="([\w-]+)"><\/a>/;
const TEST = /^ {2}- Test: `([^`]+)` "(.+)"$/;

/** Each citation of something outside the repository, with the text to write instead. */
const BANNED: readonly { cited: RegExp; instead: string }[] = [
  { cited: /\bdecisions?,? (section )?\d/i, instead: "link the page of docs/decisions/ or docs/contract/" },
  { cited: /\b(house|interface|prior[ -]art),? (section )?\d/i, instead: "link a rule of docs/contract/" },
  // RFCs are cited with a small letter: "RFC 9110, section 7.6.1".
  { cited: /\bSection \d/, instead: "link a rule of docs/contract/" },
  { cited: /\bprior[ -]art\b/i, instead: 'say "Cortex"' },
  { cited: /\bthe ancestor/i, instead: 'say "Cortex"' },
  { cited: /\.\.\/shared\b/, instead: "say the reason in place" },
  { cited: /\bissue \d/i, instead: "say the reason in place" },
];

export function bannedIn(text: string): string[] {
  return text
    .split("\n")
    .flatMap((line) =>
      BANNED.filter(({ cited }) => cited.test(line)).map(({ instead }) => `${line.trim()}: ${instead}`),
    );
}

/** The comments of a program, line by line; of a page and of Python, whose docstrings have no mark, every line. */
export function commentsOf(file: string, text: string): string {
  if (!/\.(ts|mjs)$/.test(file)) return text;
  const lines = text.split("\n").map((line) => /^\s*(?:\/\*\*?|\*|\/\/)(.*)|.*\s\/\/\s(.*)/.exec(line));
  return lines.map((found) => found?.[1] ?? found?.[2] ?? "").join("\n");
}

export class Pages {
  private readonly root: string;
  private readonly anchors = new Map<string, Set<string>>();

  constructor(root: string) {
    this.root = root;
  }

  /** The citations in a file's comments that do not exist. */
  missingIn(file: string, text: string): string[] {
    const comments = commentsOf(file, text);
    const paths = [...comments.matchAll(PATH)].filter(([, path]) => this.isOurs(path!));
    const links = file.endsWith(".md") ? [...text.matchAll(LINK)] : [];
    return [
      ...paths.map(([cited, path, anchor]) => ({ cited, target: this.find(path!, file), anchor })),
      ...links.map(([cited, path, anchor]) => ({
        cited,
        target: path === "" ? file : this.existing(join(dirname(file), path!)),
        anchor,
      })),
    ]
      .filter(
        ({ target, anchor }) =>
          target === undefined || (anchor !== undefined && !this.anchorsOf(target).has(anchor)),
      )
      .map(({ cited }) => cited);
  }

  /**
   * Only a path whose first folder exists here is checked: others belong to users' projects or to other repositories.
   */
  private isOurs(path: string): boolean {
    const [folder] = path.split("/");
    return ["", "src"].some((base) => existsSync(join(this.root, base, folder!)));
  }

  /** A path from the root, from `src/`, or beside the file that names it. */
  private find(path: string, from: string): string | undefined {
    return (
      this.existing(path) ?? this.existing(join("src", path)) ?? this.existing(join(dirname(from), path))
    );
  }

  private existing(path: string): string | undefined {
    return existsSync(join(this.root, path)) ? path : undefined;
  }

  /** The explicit anchors of a page and those of its headings. */
  private anchorsOf(page: string): Set<string> {
    const known = this.anchors.get(page);
    if (known !== undefined) return known;
    const text = readFileSync(join(this.root, page), "utf8");
    const ids = [...text.matchAll(/<a id="([\w-]+)">/g)].map(([, id]) => id!);
    const headings = [...text.matchAll(/^#+ (.*)$/gm)].map(([, heading]) => slug(heading!));
    const anchors = new Set([...ids, ...headings]);
    this.anchors.set(page, anchors);
    return anchors;
  }
}

/** The anchor that a heading has in Markdown. */
function slug(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, "")
    .replaceAll(" ", "-");
}

export interface Rule {
  anchor: string;
  tests: { file: string; name: string }[];
}

/** The rules of a page of the contract. */
export function rulesIn(page: string): Rule[] {
  const rules: Rule[] = [];
  for (const line of page.split("\n")) {
    const anchor = RULE.exec(line)?.[1];
    if (anchor !== undefined) rules.push({ anchor, tests: [] });
    const test = TEST.exec(line);
    if (test !== null) rules.at(-1)?.tests.push({ file: test[1]!, name: test[2]! });
  }
  return rules;
}

/** Whether a test file has a test, or a row of a table, whose name begins so: the name stands behind a quote or `def `. */
export function hasTest(text: string, name: string): boolean {
  return ['"', "'", "`", "def "].some((before) => text.includes(before + name));
}
