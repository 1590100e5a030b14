/** The house rules that a program can check: floors, sizes, names, environment reads, leftovers. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join, relative, resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { bannedIn, hasTest, Pages, rulesIn } from "./harness/citations.ts";
import { root } from "./harness/server.ts";

/**
 * The rooms that each room may import. A room may always import itself, and every npm package unless `npm` lists them.
 */
const ROOMS: Record<string, { rooms: readonly string[]; npm?: readonly string[] }> = {
  base: { rooms: [], npm: ["pino"] },
  contracts: { rooms: [], npm: ["zod"] },
  config: { rooms: ["base", "contracts"], npm: ["yaml"] },
  settings: { rooms: ["contracts", "access"], npm: [] },
  parent: { rooms: ["base", "contracts", "access", "observe"], npm: [] },
  protocol: { rooms: ["base", "contracts"], npm: [] },
  database: { rooms: ["base", "contracts"], npm: ["better-sqlite3", "pg"] },
  series: { rooms: ["base", "contracts", "database"], npm: [] },
  "object-store": { rooms: ["base", "contracts"] },
  state: { rooms: ["base", "contracts", "database", "object-store"], npm: ["tar"] },
  access: { rooms: ["base", "contracts"], npm: ["jose"] },
  backup: { rooms: ["base", "contracts", "database"], npm: ["tar", "zod"] },
  observe: { rooms: ["base", "contracts"], npm: [] },
  engine: { rooms: ["base", "contracts", "protocol"], npm: ["tinyqueue"] },
  kubernetes: { rooms: ["base", "contracts"], npm: ["yaml"] },
  apis: {
    rooms: [
      "base",
      "contracts",
      "config",
      "protocol",
      "database",
      "object-store",
      "engine",
      "access",
      "observe",
      "series",
      "state",
      "kubernetes",
    ],
  },
  legacy: {
    rooms: [
      "base",
      "contracts",
      "config",
      "protocol",
      "database",
      "object-store",
      "engine",
      "access",
      "observe",
      "state",
    ],
  },
  batch: {
    rooms: [
      ...["base", "contracts", "protocol", "database", "object-store", "engine", "access", "observe"],
      ...["series", "state", "kubernetes"],
    ],
  },
  gateway: { rooms: ["base", "contracts", "protocol", "access", "observe"], npm: ["tinyqueue"] },
  explain: { rooms: ["base", "contracts"], npm: [] },
  control: {
    rooms: [
      ...["base", "contracts", "apis", "backup", "batch", "explain", "legacy", "access", "observe"],
      "series",
    ],
  },
  cli: { rooms: ["base", "contracts"] },
  dashboard: { rooms: ["contracts"], npm: ["preact", "preact/hooks", "@preact/signals", "uplot", "zod"] },
  controller: {
    rooms: [
      ...["base", "contracts", "settings", "database", "object-store", "engine", "access", "observe"],
      ...["apis", "backup", "batch", "explain", "legacy", "control", "series", "state", "kubernetes"],
    ],
    npm: ["@hono/node-server"],
  },
};
/** What each page of the dashboard may import. */
const PAGES = [
  ...["dashboard", "dashboard/address", "dashboard/format", "dashboard/live"],
  ...["dashboard/actions", "dashboard/charts", "dashboard/parts", "dashboard/server", "dashboard/session"],
];
/** The parts of its own room that an inner room may import; "batch" stands for the files directly in batch. */
const INNER_ROOMS: Record<string, readonly string[]> = {
  base: ["base/log"],
  "base/log": ["base"],
  "base/fair": [],
  "base/loop": ["base"],
  "base/files": ["base", "base/loop"],
  "base/json": [],
  apis: [
    "apis/config",
    "apis/deploy",
    "apis/projects",
    "apis/records",
    "apis/replicas",
    "apis/serving",
    "apis/traffic",
  ],
  "apis/serving": ["apis/records"],
  "apis/pods": ["apis/records", "apis/replicas", "apis/serving"],
  "apis/traffic": [],
  "apis/config": [],
  "apis/deploy": ["apis/config", "apis/projects", "apis/records"],
  "apis/projects": [],
  "apis/records": ["apis/config"],
  "apis/replicas": ["apis/config", "apis/records", "apis/serving"],
  batch: [
    "batch/submit",
    "batch/enqueue",
    "batch/letters",
    "batch/listing",
    "batch/deliveries",
    "batch/warm",
    "batch/workers",
    "batch/dispatch",
    "batch/isolate",
    "batch/items",
    "batch/lost-rows",
    "batch/end",
    "batch/output",
    "batch/places",
    "batch/records",
    "batch/results",
    "batch/spans",
    "batch/rounds",
  ],
  kubernetes: ["kubernetes/objects"],
  "kubernetes/objects": ["kubernetes"],
  "kubernetes/certificates": [],
  "kubernetes/pods": ["kubernetes", "kubernetes/certificates", "kubernetes/objects"],
  "batch/pods": ["batch/records", "batch/workers"],
  "batch/places": [],
  "batch/items": ["batch/records"],
  "batch/lost-rows": ["batch/records"],
  "batch/records": [],
  "batch/isolate": ["batch/letters", "batch/records", "batch/rows"],
  "batch/zstd": ["batch/records"],
  "batch/rows": ["batch/records"],
  "batch/output": [
    ...["batch/deliveries", "batch/isolate", "batch/lost-rows", "batch/records", "batch/rows", "batch/zstd"],
  ],
  "batch/results": ["batch/isolate", "batch/output", "batch/records", "batch/rows"],
  "batch/submit": ["batch/output", "batch/records", "batch/rounds"],
  "batch/enqueue": ["batch/places", "batch/records", "batch/zstd"],
  "batch/letters": ["batch/records"],
  "batch/listing": ["batch/records"],
  "batch/deliveries": ["batch/rows"],
  "batch/spans": [],
  "batch/rounds": ["batch/records"],
  "batch/warm": [],
  "batch/workers": ["batch/deliveries", "batch/records", "batch/rows", "batch/spans", "batch/warm"],
  "batch/dispatch": [
    "batch/deliveries",
    "batch/isolate",
    "batch/letters",
    "batch/records",
    "batch/rows",
    "batch/workers",
  ],
  "batch/end": [
    ...["batch/dispatch", "batch/isolate", "batch/letters", "batch/output", "batch/records", "batch/rounds"],
  ],
  cli: ["cli/dashboard", "cli/jobs", "cli/kubernetes", "cli/project", "cli/server", "cli/terminal"],
  "cli/dashboard": ["cli/server", "cli/terminal"],
  "cli/jobs": ["cli/server", "cli/terminal"],
  "cli/kubernetes": ["cli/server", "cli/terminal"],
  "cli/server": [],
  "cli/terminal": ["cli/server"],
  "cli/project": ["cli/server", "cli/terminal"],
  contracts: ["contracts/limits", "contracts/validation"],
  "contracts/config": ["contracts", "contracts/limits"],
  "contracts/http": ["contracts", "contracts/config", "contracts/limits"],
  "contracts/limit-table": ["contracts", "contracts/config", "contracts/limits"],
  "contracts/limits": [],
  "contracts/limits/kubernetes": [],
  "contracts/validation": ["contracts/limits"],
  control: [
    ...["control/answers", "control/dashboard", "control/explain", "control/jobs", "control/overview"],
    "control/requests",
  ],
  "control/answers": ["control/requests"],
  "control/dashboard": [
    ...["control", "control/answers", "control/explain", "control/jobs", "control/overview"],
    "control/requests",
  ],
  "control/explain": ["control", "control/jobs"],
  "control/jobs": ["control/answers", "control/requests"],
  "control/overview": ["control", "control/answers", "control/requests"],
  "control/requests": [],
  dashboard: [
    ...["dashboard/address", "dashboard/live", "dashboard/server", "dashboard/session"],
    "dashboard/shell",
  ],
  "dashboard/actions": ["dashboard/parts", "dashboard/server", "dashboard/session"],
  "dashboard/address": ["dashboard/server"],
  "dashboard/charts": ["dashboard/format", "dashboard/parts", "dashboard/session"],
  "dashboard/format": [],
  "dashboard/live": ["dashboard", "dashboard/format", "dashboard/server"],
  "dashboard/pages/access": PAGES,
  "dashboard/pages/api": [...PAGES, "dashboard/pages/jobs"],
  "dashboard/pages/apis": [...PAGES, "dashboard/pages/overview"],
  "dashboard/pages/applications": PAGES,
  "dashboard/pages/job": [...PAGES, "dashboard/pages/api", "dashboard/pages/jobs"],
  "dashboard/pages/jobs": PAGES,
  "dashboard/pages/overview": PAGES,
  "dashboard/pages/queues": [...PAGES, "dashboard/pages/jobs"],
  "dashboard/parts": ["dashboard", "dashboard/address", "dashboard/format", "dashboard/server"],
  "dashboard/server": [],
  "dashboard/session": ["dashboard", "dashboard/live", "dashboard/server"],
  "dashboard/shell": [
    ...["dashboard/actions", "dashboard/address", "dashboard/live", "dashboard/parts"],
    ...["dashboard/server", "dashboard/session"],
    ...["access", "api", "apis", "applications", "job", "jobs", "overview", "queues"].map(
      (page) => `dashboard/pages/${page}`,
    ),
  ],
  database: ["database/schema"],
  "database/postgres": ["database"],
  "database/schema": [],
  engine: ["engine/environments", "engine/scheduler"],
  "engine/environments": [],
  "engine/local": ["engine", "engine/environments"],
  "engine/scheduler": [],
  explain: [],
  "explain/api": ["explain"],
  "explain/job": ["explain"],
  "explain/past": ["explain"],
  gateway: ["gateway/answers", "gateway/connections", "gateway/door", "gateway/replicas"],
  "gateway/answers": ["gateway/connections"],
  "gateway/connections": [],
  "gateway/connections/turns": ["gateway/connections"],
  "gateway/door": ["gateway/answers", "gateway/connections", "gateway/connections/turns"],
  "gateway/replicas": ["gateway/answers"],
  legacy: ["legacy/check"],
  "legacy/check": [],
  "object-store": [],
  "object-store/backends": ["object-store", "object-store/files", "object-store/listing"],
  "object-store/files": ["object-store", "object-store/listing"],
  "object-store/listing": ["object-store"],
  "object-store/select": ["object-store", "object-store/listing"],
};
const ROOM_FILES_MAX = 16;
const BANNED =
  /(^|-)(utils?|helpers?|common|shared|misc|lib|core|manager|handler|processor|impl|index)(-|\.|$)/;
const FUNCTION = /^( *)(?:export )?(?:async )?function\*? (\w+)/;
const METHOD = /^( {2})(?:(?:private|static|async|get) )*\*?(\w+)\(.*\{$/;
const BASE_FILES_MAX = 10;
const FILE_LINES_MAX = 250;
const FUNCTION_LINES_MAX = 70;
const PROSE_COLUMNS_MAX = 120;

const files = walk(join(root, "src")).filter((file) => /\.tsx?$/.test(file));
const python = walk(join(root, "python")).filter((file) => file.endsWith(".py"));

function walk(directory: string): string[] {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
}

function importsOf(file: string): string[] {
  return [...readFileSync(file, "utf8").matchAll(/(?:\bfrom\s+|\bimport\s*\(?\s*)"([^"]+)"/g)].map(
    (match) => match[1]!,
  );
}

const folderOf = (file: string) => relative(join(root, "src"), dirname(file));
const roomOf = (file: string) => folderOf(file).split("/")[0]!;

describe("the source code", () => {
  it("has exactly the rooms of the table", () => {
    expect(new Set(files.map(roomOf))).toEqual(new Set(["", ...Object.keys(ROOMS)]));
  });

  it.each(files.filter((file) => roomOf(file) !== "").map((file) => relative(root, file)))(
    "%s imports only from its own room and lower floors",
    (name) => {
      const file = join(root, name);
      const rules = ROOMS[roomOf(file)]!;
      for (const path of importsOf(file)) {
        if (path.startsWith("."))
          expect([roomOf(file), ...rules.rooms], path).toContain(roomOf(resolve(dirname(file), path)));
        else if (!path.startsWith("node:") && rules.npm !== undefined)
          expect(rules.npm, path).toContain(path);
      }
    },
  );

  it("has inner rooms that import in one direction only", () => {
    const inner = files.filter((file) => folderOf(file) in INNER_ROOMS || folderOf(file).includes("/"));
    for (const file of inner) {
      const folder = folderOf(file);
      const targets = importsOf(file)
        .filter((path) => path.startsWith("."))
        .map((path) => folderOf(resolve(dirname(file), path)));
      for (const target of targets.filter((each) => each.split("/")[0] === roomOf(file)))
        expect([folder, ...(INNER_ROOMS[folder] ?? [])], relative(root, file)).toContain(target);
    }
  });

  it("has rooms of at most 16 files", () => {
    for (const folder of new Set(files.map(folderOf)))
      expect(files.filter((file) => folderOf(file) === folder).length, folder).toBeLessThanOrEqual(
        ROOM_FILES_MAX,
      );
  });

  it("reads the environment in only one file", () => {
    const readers = files.filter((file) => readFileSync(file, "utf8").includes("process.env"));
    expect(readers.map((file) => relative(root, file))).toEqual(["src/settings/environment.ts"]);
  });

  it("reads the wall clock only in base/clock.ts, so that it measures no duration or deadline", () => {
    const readers = files.filter((file) => /Date\.now\(|new Date\(\)/.test(readFileSync(file, "utf8")));
    // The dashboard runs in a browser, and has the browser's clock.
    expect(readers.map((file) => relative(root, file))).toEqual([
      "src/base/clock.ts",
      "src/dashboard/format/now.ts",
    ]);
  });

  it("handles the failure of every promise", () => {
    const directory = mkdtempSync(join(tmpdir(), "quern-promises-"));
    const bad = [
      "work();",
      "void work();",
      "work().then(() => {});",
      "setTimeout(() => work(), 1);",
      "setTimeout(async () => {}, 1);",
    ];
    const good = ["work().catch(() => {});", "await work();"];
    const text = (lines: readonly string[]) =>
      `declare function work(): Promise<void>;\ndeclare function setTimeout(run: () => void, ms: number): void;\n${lines.join("\n")}\nexport {};\n`;
    writeFileSync(
      join(directory, "tsconfig.json"),
      '{"compilerOptions": {"strict": true, "module": "esnext", "target": "es2022"}}',
    );
    writeFileSync(join(directory, "good.ts"), text(good));
    for (const [at, line] of bad.entries()) writeFileSync(join(directory, `bad${at}.ts`), text([line]));
    const args = ["--type-aware", "-c", join(root, ".oxlintrc.json"), "--format", "unix", "."];
    const env = { ...process.env, PATH: `${join(root, "node_modules", ".bin")}:${process.env.PATH}` };
    const { stdout } = spawnSync(join(root, "node_modules", ".bin", "oxlint"), args, {
      ...{ cwd: directory, encoding: "utf8", env },
    });
    rmSync(directory, { recursive: true });
    const found = new Set([...stdout.matchAll(/^(\w+\.ts):.*promises/gm)].map(([, file]) => file));
    expect(found, stdout).toEqual(new Set(bad.map((_, at) => `bad${at}.ts`)));
  });

  it("prints in only two places, which escape control sequences: in the command line and in the server", () => {
    const printers = files.filter((file) =>
      /process\.std(out|err)\b|\bconsole\.|process\.emitWarning\(|output: process/.test(
        readFileSync(file, "utf8"),
      ),
    );
    expect(printers.map((file) => relative(root, file)).sort()).toEqual([
      "src/cli/terminal/output.ts",
      "src/observe/words.ts",
    ]);
  });

  it("has a small base, short files and meaningful names", () => {
    expect(files.filter((file) => folderOf(file) === "base").length).toBeLessThanOrEqual(BASE_FILES_MAX);
    for (const file of [...files, ...python]) {
      expect(readFileSync(file, "utf8").trimEnd().split("\n").length, file).toBeLessThanOrEqual(
        FILE_LINES_MAX,
      );
      expect(basename(file), file).not.toMatch(BANNED);
    }
  });

  it("has no function of more than 70 lines without a comment that says why", () => {
    for (const file of files) {
      for (const { name, lines, isExplained } of longFunctions(readFileSync(file, "utf8"))) {
        expect(
          isExplained,
          `${relative(root, file)}: ${name} has ${lines} lines; split it, or say above it why it is "Long: …"`,
        ).toBe(true);
      }
    }
  });

  it("begins every file with a comment about what it owns", () => {
    for (const file of files) expect(readFileSync(file, "utf8"), file).toMatch(/^\/\*\*/);
    for (const file of python.filter((name) => basename(name) !== "__init__.py"))
      expect(readFileSync(file, "utf8"), file).toMatch(/^"""/);
  });

  it("uses no name that the glossary bans", () => {
    const glossary = readFileSync(join(root, "docs", "glossary.md"), "utf8");
    const table = glossary.slice(glossary.indexOf("## Names that the code does not use"));
    const unused = [...table.matchAll(/^\| `(\w+)` \|/gm)].map((match) => match[1]!);
    expect(unused.length).toBeGreaterThan(5);
    const name = new RegExp(`(?<![A-Z])(${unused.join("|")})s?(?![a-z])`, "g");
    const found = (code: string) => code.replace(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, "").match(name) ?? [];
    for (const file of files) expect(found(readFileSync(file, "utf8")), relative(root, file)).toEqual([]);
    expect(found("onRoomWait(Grants, tokenHolder) // Ground")).toEqual(["Room", "Grants", "Holder"]);
  });

  it("has no leftovers", () => {
    for (const file of [...files, ...python, ...walk(join(root, "test")), ...walk(join(root, "scripts"))]) {
      if (file === join(root, "test", "tidy.test.ts") || file.endsWith(".pyc")) continue;
      expect(readFileSync(file, "utf8"), file).not.toMatch(
        /\b(TODO|FIXME|XXX|HACK)\b|\.only\(|\.skip\(|console\.debug|debugger;/,
      );
    }
  });
});

/** Files whose citations must exist: programs and pages, except this test and its helper, which name bad ones. */
const readable = [
  ...["src", "python", "test", "bench", "scripts", "assembly", "docs", "examples"].flatMap((folder) =>
    walk(join(root, folder)),
  ),
  ...readdirSync(root).map((name) => join(root, name)),
]
  .filter((file) => /\.(ts|mjs|py|md)$/.test(file) && !/tidy\.test\.ts|citations\.ts/.test(file))
  .map((file) => ({ file: relative(root, file), text: readFileSync(file, "utf8") }));

describe("comments and pages", () => {
  const pages = new Pages(root);

  it("cite files and anchors that exist", () => {
    // The changelog tells of files that later releases have moved.
    const missing = readable
      .filter(({ file }) => file !== "CHANGELOG.md")
      .flatMap(({ file, text }) => pages.missingIn(file, text).map((cited) => `${file}: ${cited}`));
    expect(missing).toEqual([]);
    expect(
      pages.missingIn("docs/glossary.md", "[a](contract/jobs.md#stop) [b](#no) src/up.ts, src/no.ts"),
    ).toEqual(["src/no.ts", "](#no)"]);
    expect(
      pages.missingIn("src/x.ts", "/** docs/contract/jobs.md#stop docs/contract/jobs.md#no batch/no.ts */"),
    ).toEqual(["docs/contract/jobs.md#no", "batch/no.ts"]);
  });

  it("cite only what the repository has", () => {
    const found = readable.flatMap(({ file, text }) => bannedIn(text).map((line) => `${file}: ${line}`));
    expect(found).toEqual([]);
    for (const line of [
      "(decision 3.6)",
      "decisions, section 5",
      "house, section 3",
      "prior art 4.3",
      "Section 2.2",
    ])
      expect(bannedIn(line), line).not.toEqual([]);
    for (const line of ["as the ancestor did", "../shared/x", "issue 16"])
      expect(bannedIn(line), line).not.toEqual([]);
    expect(bannedIn("RFC 9110, section 7.6.1; docs/decisions/0004-commit-order.md")).toEqual([]);
  });

  const contract = readable.filter(({ file }) => file.startsWith("docs/contract/"));
  const rules = contract.flatMap(({ file, text }) => rulesIn(text).map((rule) => ({ file, ...rule })));

  it("name an existing test for each rule of the contract", () => {
    expect(rules.length).toBeGreaterThan(200);
    expect(new Set(rules.map(({ anchor }) => anchor)).size).toBe(rules.length);
    const texts = new Map(readable.map(({ file, text }) => [file, text]));
    for (const { file, anchor, tests } of rules) {
      expect(tests.length, `${file}#${anchor} names no test`).toBeGreaterThan(0);
      for (const test of tests)
        expect(
          hasTest(texts.get(test.file) ?? "", test.name),
          `${file}#${anchor}: ${test.file} "${test.name}"`,
        ).toBe(true);
    }
    expect(hasTest('it("takes it", () => {', "takes")).toBe(true);
    expect(hasTest("// it takes it", "takes")).toBe(false);
  });

  it("have prose of at most 120 columns", () => {
    const written = readable.filter(
      ({ file }) => file.endsWith(".md") && !file.startsWith("docs/reference/"),
    );
    expect(written.flatMap(({ file, text }) => wideLines(text).map((line) => `${file}: ${line}`))).toEqual(
      [],
    );
    const long = "word ".repeat(30).trim();
    expect(wideLines(`${long}\n| ${long}\n\`\`\`\n${long}\n\`\`\`\n![${long}](x.svg)`)).toEqual([long]);
  });

  it("list every file of the top floor in ARCHITECTURE.md", () => {
    const text = readFileSync(join(root, "ARCHITECTURE.md"), "utf8");
    const top = files.filter((file) => roomOf(file) === "").map((file) => basename(file));
    expect(top.filter((name) => !text.includes(`| \`${name}\` |`))).toEqual([]);
  });
});

const hasGit = spawnSync("git", ["--version"]).status === 0;

describe.skipIf(!hasGit)("the breakages of npm run mutations", () => {
  const directory = join(root, "test", "mutations");
  it.each(readdirSync(directory))("%s applies", (name) => {
    const { stderr } = spawnSync("git", ["apply", "--check", join(directory, name)], {
      ...{ cwd: root, encoding: "utf8" },
    });
    expect(stderr, "write it again: npm run mutations -- --write NAME").toBe("");
  });
});

/**
 * Lines of a page that are too long to read, except table rows, pictures, test names and blocks, which cannot be
 * broken.
 */
function wideLines(text: string): string[] {
  let isBlock = false;
  return text.split("\n").filter((line) => {
    if (/^\s*(```|~~~)/.test(line)) isBlock = !isBlock;
    return !isBlock && line.length > PROSE_COLUMNS_MAX && !/^\s*(\||!\[|- Test: )/.test(line);
  });
}

/** Functions and methods by indentation: from a line that ends in `{` to the closing brace below its first letter. */
function longFunctions(text: string): { name: string; lines: number; isExplained: boolean }[] {
  const lines = text.split("\n");
  const found: { name: string; lines: number; isExplained: boolean }[] = [];
  lines.forEach((line, start) => {
    const head = FUNCTION.exec(line) ?? METHOD.exec(line);
    const name = head?.[2];
    if (name === undefined || ["if", "for", "while", "switch", "catch"].includes(name)) return;
    const end = lines.findIndex((other, i) => i > start && other.startsWith(`${head![1]}}`));
    if (end - start > FUNCTION_LINES_MAX)
      found.push({
        name,
        lines: end - start,
        isExplained: lines.slice(Math.max(0, start - 4), start).some((above) => above.includes("Long:")),
      });
  });
  return found;
}
