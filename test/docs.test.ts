/** Docs are part of the build: pages from the code are up to date, links lead somewhere, examples and commands run. */
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "./harness/eventually.ts";
import { root, TestServer } from "./harness/server.ts";

const pages = [
  "README.md",
  "ARCHITECTURE.md",
  "CONTRIBUTING.md",
  "CHANGELOG.md",
  ...readdirSync(join(root, "docs"), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".md"))
    .map((name) => join("docs", name)),
];

describe("the docs", () => {
  it("that are made from the code are up to date", () => {
    execFileSync(process.execPath, ["scripts/reference.mjs", "--check"], { cwd: root, stdio: "pipe" });
  });

  it.each(pages)("%s links to what is there", (page) => {
    for (const [, target] of readFileSync(join(root, page), "utf8").matchAll(/\]\(([^)#:]+)\)/g)) {
      expect(existsSync(join(root, dirname(page), target!)), target).toBe(true);
    }
  });

  it("justifies every dependency", () => {
    const { dependencies, optionalDependencies, devDependencies } = JSON.parse(
      readFileSync(join(root, "package.json"), "utf8"),
    ) as Record<string, Record<string, string>>;
    const text = readFileSync(join(root, "docs", "dependencies.md"), "utf8");
    for (const name of Object.keys({ ...dependencies, ...optionalDependencies, ...devDependencies }))
      expect(text).toContain(`\`${name}\``);
  });

  it("names only files that exist", () => {
    const text = readFileSync(join(root, "ARCHITECTURE.md"), "utf8");
    for (const [, file] of text.matchAll(
      /`((?:gateway|control|batch|protocol|apis|contracts|database|engine|object-store)\/[\w-]+\.ts)`/g,
    )) {
      expect(existsSync(join(root, "src", file!)), file).toBe(true);
    }
  });
});

describe("getting started", () => {
  const server = new TestServer();
  beforeAll(() => server.start());
  afterAll(() => server.stop());

  it("works as it is written", async () => {
    const text = readFileSync(join(root, "docs", "getting-started.md"), "utf8");
    const block = (language: string, nth = 0) =>
      [...text.matchAll(new RegExp(`\`\`\`${language}\n([\\s\\S]*?)\`\`\``, "g"))][nth]![1]!;
    const project = join(server.dir, "hello");
    mkdirSync(project);
    writeFileSync(join(project, "predictor.py"), block("python"));
    writeFileSync(join(project, "quern.yaml"), block("yaml") + block("yaml", 1));
    writeFileSync(join(project, "job.json"), block("json"));
    expect(server.cli(["deploy", "quern.yaml", "--wait"], { cwd: project })).toMatchObject({ code: 0 });
    expect(server.cli(["predict", "hello", "-"], { cwd: project, input: '{"name": "Ada"}' }).out).toBe(
      '"Hello, Ada"\n',
    );
    const job = server.cli(["job", "submit", "hello-batch", "job.json", "--wait"], { cwd: project });
    expect(job.code).toBe(11);
    expect(job.out).toContain("status: completed with failures");
    const id = /job id: (\S+)/.exec(job.out)![1]!;
    await eventually("the traceback is in the log", () =>
      server.cli(["job", "logs", "hello-batch", id]).out.includes("TypeError"),
    );
  });
});
