/** The house rules that a program can hold: floors, sizes, names, environment reads, leftovers. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join, relative, resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { root } from "./harness/server.ts";

/** What each room may import; a room always may import itself, and every npm package but where `npm` says otherwise. */
const ROOMS: Record<string, { rooms: readonly string[]; npm?: readonly string[] }> = {
  base: { rooms: [], npm: ["pino"] },
  contracts: { rooms: [], npm: ["zod"] },
  config: { rooms: ["base", "contracts"], npm: ["yaml"] },
  protocol: { rooms: ["base", "contracts"], npm: [] },
  database: { rooms: ["base", "contracts"], npm: ["better-sqlite3", "pg"] },
  "object-store": { rooms: ["base", "contracts"] },
  access: { rooms: ["base", "contracts"], npm: ["jose"] },
  observe: { rooms: ["base", "contracts"], npm: [] },
  engine: { rooms: ["base", "contracts", "protocol"], npm: [] },
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
    ],
  },
  batch: {
    rooms: ["base", "contracts", "protocol", "database", "object-store", "engine", "access", "observe"],
  },
  gateway: { rooms: ["base", "contracts", "protocol", "access", "observe"], npm: [] },
  control: { rooms: ["base", "contracts", "apis", "batch", "legacy", "access", "observe"] },
  cli: { rooms: ["base", "contracts"] },
};
const BANNED =
  /(^|-)(utils?|helpers?|common|shared|misc|lib|core|manager|handler|processor|impl|index)(-|\.|$)/;
const FUNCTION = /^( *)(?:export )?(?:async )?function\*? (\w+)/;
const METHOD = /^( {2})(?:(?:private|static|async|get) )*\*?(\w+)\(.*\{$/;
const BASE_FILES_MAX = 10;
const FILE_LINES_MAX = 500;
const FUNCTION_LINES_MAX = 70;

const files = walk(join(root, "src")).filter((file) => file.endsWith(".ts"));
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

const roomOf = (file: string) => relative(join(root, "src"), dirname(file)).split("/")[0]!;

describe("the house", () => {
  it("has the rooms of the table, and no other", () => {
    expect(new Set(files.map(roomOf))).toEqual(new Set(["", ...Object.keys(ROOMS)]));
  });

  it.each(files.filter((file) => roomOf(file) !== "").map((file) => relative(root, file)))(
    "%s imports from its own room and lower floors only",
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

  it("reads the environment in settings.ts only", () => {
    const readers = files.filter((file) => readFileSync(file, "utf8").includes("process.env"));
    expect(readers.map((file) => relative(root, file))).toEqual(["src/settings.ts"]);
  });

  it("reads the wall clock in base/clock.ts only, so that no duration or deadline is measured by it", () => {
    const readers = files.filter((file) => /Date\.now\(|new Date\(\)/.test(readFileSync(file, "utf8")));
    expect(readers.map((file) => relative(root, file))).toEqual(["src/base/clock.ts"]);
  });

  it("lets no promise go whose failure nobody would hear of", () => {
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

  it("prints in two places only, which escape what a terminal would obey: the command line's and the server's", () => {
    const printers = files.filter((file) =>
      /process\.std(out|err)\b|\bconsole\.|process\.emitWarning\(|output: process/.test(
        readFileSync(file, "utf8"),
      ),
    );
    expect(printers.map((file) => relative(root, file)).sort()).toEqual([
      "src/cli/output.ts",
      "src/observe/words.ts",
    ]);
  });

  it("keeps base small, files under 500 lines, and names that say something", () => {
    expect(files.filter((file) => roomOf(file) === "base").length).toBeLessThanOrEqual(BASE_FILES_MAX);
    for (const file of [...files, ...python]) {
      expect(readFileSync(file, "utf8").split("\n").length, file).toBeLessThan(FILE_LINES_MAX);
      expect(basename(file), file).not.toMatch(BANNED);
    }
  });

  it("has no function over 70 lines without a line that says why", () => {
    for (const file of files) {
      for (const { name, lines, isExplained } of longFunctions(readFileSync(file, "utf8"))) {
        expect(
          isExplained,
          `${relative(root, file)}: ${name} has ${lines} lines; split it, or say above it why it is "Long: …"`,
        ).toBe(true);
      }
    }
  });

  it("begins every file with what it owns", () => {
    for (const file of files) expect(readFileSync(file, "utf8"), file).toMatch(/^\/\*\*/);
    for (const file of python.filter((name) => basename(name) !== "__init__.py"))
      expect(readFileSync(file, "utf8"), file).toMatch(/^"""/);
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
