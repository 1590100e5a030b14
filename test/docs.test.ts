/** Docs are part of the build: pages from the code are up to date, links lead somewhere, examples and commands run. */
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { root } from "./harness/server.ts";

const pages = [
  "README.md",
  "ARCHITECTURE.md",
  "CONTRIBUTING.md",
  "CHANGELOG.md",
  "SECURITY.md",
  ...readdirSync(join(root, "docs"), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".md"))
    .map((name) => join("docs", name)),
];

describe("the docs", () => {
  it("are up to date if they are generated from the code", () => {
    execFileSync(process.execPath, ["scripts/reference.mjs", "--check"], { cwd: root, stdio: "pipe" });
  }, 300_000);

  it.each(pages)("have no broken link in %s", (page) => {
    for (const [, target] of readFileSync(join(root, page), "utf8").matchAll(/\]\(([^)#:]+)\)/g)) {
      expect(existsSync(join(root, dirname(page), target!)), target).toBe(true);
    }
  });

  it("justify every dependency", () => {
    const { dependencies, optionalDependencies, devDependencies } = JSON.parse(
      readFileSync(join(root, "package.json"), "utf8"),
    ) as Record<string, Record<string, string>>;
    const text = readFileSync(join(root, "docs", "dependencies.md"), "utf8");
    for (const name of Object.keys({ ...dependencies, ...optionalDependencies, ...devDependencies }))
      expect(text).toContain(`\`${name}\``);
  });

  it("name only files that exist", () => {
    expect(missingIn(readFileSync(join(root, "ARCHITECTURE.md"), "utf8"))).toEqual([]);
  });

  it("are noticed if they name a file that does not exist, however it is named", () => {
    const good = [
      "batch/end/finish-job.ts",
      "door/admission.ts",
      "sqs.ts",
      "python/quern_runtime/worker.py",
      "src/",
    ];
    const wrong = [
      "batch/end/no-file.ts",
      "door/finish-job.ts",
      "no-file.ts",
      "worker.js/no.py",
      "src/no-room/",
    ];
    const others = ["<data>/routes.json", "app.yaml", "src/*.ts", "/dev/null", "…-verbs.ts"];
    expect(missingIn([...good, ...wrong, ...others].map((name) => `\`${name}\``).join(" "))).toEqual(wrong);
  });
});

/** Paths in code: of files, and of folders with a slash at their end. An anchor may follow. */
const PATHS = /`((?:[\w.-]+\/)*[\w.-]+\.(?:ts|py|mjs|json|md)|(?:[\w.-]+\/)+)(?:#[\w-]+)?`/g;
const FOLDERS = ["src", "python", "assembly", "test", "scripts", "docs", "protocol"];

/** Paths in the text that lead nowhere: from the root, or as the end of a file's path below one of the folders. */
function missingIn(text: string): string[] {
  const ends = FOLDERS.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: "utf8" }).map((name) => `/${name}`),
  );
  const paths = [...text.matchAll(PATHS)].map(([, path]) => path!);
  return paths.filter((path) => {
    const end = `/${path.replace(/\/$/, "")}`;
    return !existsSync(join(root, path)) && !ends.some((name) => name.endsWith(end));
  });
}
