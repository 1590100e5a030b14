/** Projects of other authors: which files of the machine `quern deploy` uploads with them. */
import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { list } from "tar";
import { afterEach, beforeEach, expect, it } from "vitest";
import { packProject } from "../../src/cli/project/pack-project.ts";
import { root } from "../harness/server.ts";

let directory: string;
let project: string;
beforeEach(() => {
  directory = realpathSync(mkdtempSync(join(tmpdir(), "quern-links-")));
  project = join(directory, "project");
  write({
    "project/quern.yaml": "[]",
    "project/p.py": "pass",
    "home/.ssh/id_rsa": "SECRET",
    "home/notes": "SECRET",
  });
});
afterEach(() => rmSync(directory, { recursive: true }));

function write(files: Record<string, string>): void {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(directory, name)), { recursive: true });
    writeFileSync(join(directory, name), text);
  }
}
const link = (at: string, to: string) => symlinkSync(to, join(project, at));
const packed = async () => {
  const { archive } = await packProject(project);
  const paths: string[] = [];
  await pipeline(
    Readable.fromWeb(archive as never),
    list({ onReadEntry: ({ path, type }) => paths.push(type === "File" ? path : `${path}: ${type}`) }),
  );
  return paths.sort();
};

it.each([
  ["a file", "../home/notes"],
  ["a directory", "../home"],
  ["a file of the system", "/etc/passwd"],
  ["a device", "/dev/zero"],
  ["a directory whose name begins with the project's", "../project-2/x"],
])("a link out of the project is refused, with its target: %s", async (_, to) => {
  write({ "project-2/x": "SECRET" });
  link("data.bin", to);
  await expect(packProject(project)).rejects.toThrow(
    /^data\.bin is a link to .*, outside of the project; copy/,
  );
  write({ "project/.quernignore": "data.bin\n" });
  expect(await packed()).toEqual(["config.yaml", "project/p.py"]);
});

it("a link out of the project behind another link is refused, and so is a circular link", async () => {
  write({ "project/a/x": "x" });
  link("b", "a");
  link("a/out", "../../home");
  await expect(packProject(project)).rejects.toThrow(/outside of the project/);
  rmSync(join(project, "a/out"));
  for (const [at, to] of [
    ["here", "."],
    ["a/up", ".."],
    ["self", "self"],
    ["a/b", "../b"],
  ] as const) {
    link(at, to);
    await expect(packProject(project), at).rejects.toThrow(/is a circular link; remove it/);
    rmSync(join(project, at));
  }
});

it("a link inside the project is replaced by its target, by the same rules as other files", async () => {
  write({
    "project/data/model.bin": "x",
    "project/data/.git/config": "SECRET",
    "project/data/raw.csv": "SECRET",
    "project/.quernignore": "*.csv\nold\n",
  });
  link("latest", "data");
  link("old", "data");
  link("model", "data/model.bin");
  expect(await packed()).toEqual([
    "config.yaml",
    "project/data/model.bin",
    "project/latest/model.bin",
    "project/model",
    "project/p.py",
  ]);
});

it.each([
  ["a pipe", () => execFileSync("sh", ["-c", `mkfifo "${join(project, ".quernignore")}"`])],
  ["a device", () => link(".quernignore", "/dev/zero")],
  ["a directory", () => write({ "project/.quernignore/x": "x" })],
  ["very large", () => write({ "project/.quernignore": "x".repeat(1024 * 1024 + 1) })],
])("a .quernignore that is %s is refused at once", async (_, make) => {
  make();
  await expect(packProject(project)).rejects.toThrow(".quernignore must be a file of at most 1048576 bytes");
});

it.each([
  ["a pipe", () => execFileSync("mkfifo", [join(project, "quern.yaml")])],
  ["a device", () => link("quern.yaml", "/dev/zero")],
  ["very large", () => write({ "project/quern.yaml": " ".repeat(1024 * 1024 + 1) })],
])("a configuration that is %s is refused at once", (_, make) => {
  rmSync(join(project, "quern.yaml"));
  make();
  const quern = (...args: string[]) =>
    spawnSync(process.execPath, [join(root, "bin", "quern"), ...args], { cwd: project, timeout: 60_000 });
  const { status, stderr } = quern("refresh");
  expect([status, String(stderr)]).toEqual([2, expect.stringContaining("quern.yaml cannot be read")]);
  expect(String(quern("patch").stderr)).toContain("quern.yaml must be a file of at most 1048576 bytes");
});

it("a project is refused if files vanish while it is packed", async () => {
  write(Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`project/data/${i}`, "x"])));
  const { archive } = await packProject(project);
  rmSync(join(project, "data"), { recursive: true });
  await expect(new Response(archive).arrayBuffer()).rejects.toThrow("the project changed while it was read");
});
