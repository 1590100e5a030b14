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
    const text = readFileSync(join(root, "ARCHITECTURE.md"), "utf8");
    for (const [, file] of text.matchAll(
      /`((?:gateway|control|batch|protocol|apis|contracts|database|engine|object-store)\/[\w-]+\.ts)`/g,
    )) {
      expect(existsSync(join(root, "src", file!)), file).toBe(true);
    }
  });
});
