/** Projects as they were deployed, with real archives and files. */
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { Readable } from "node:stream";
import { create } from "tar";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { unpackProject } from "../../../src/apis/projects/project-store.ts";

let directory: string;
let dataDir: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "quern-projects-"));
  dataDir = join(directory, "data");
  write({ "config.yaml": "- name: a\n", "project/p.py": "pass\n", "project/lib/deep/x.py": "X = 1\n" });
});
afterEach(() => {
  vi.restoreAllMocks();
  rmSync(directory, { recursive: true });
});

function write(files: Record<string, string>): void {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(directory, "upload", name)), { recursive: true });
    writeFileSync(join(directory, "upload", name), text);
  }
}

const upload = () => {
  const archive = create({ cwd: join(directory, "upload") }, ["config.yaml", "project"]);
  const chunks = archive as unknown as AsyncIterable<Buffer>;
  return unpackProject(dataDir, { archive: Readable.from(chunks), onReceived: () => {} });
};

it("a project that is deployed again is verified, and damaged files are replaced", async () => {
  const first = await upload();
  truncateSync(join(first.directory, "p.py"));
  rmSync(join(first.directory, "lib"), { recursive: true });
  writeFileSync(join(first.directory, "lib"), "in the place of a directory");
  writeFileSync(join(first.directory, "cache.bin"), "of user code");
  const again = await upload();
  expect(again).toEqual(first);
  expect(readFileSync(join(first.directory, "p.py"), "utf8")).toBe("pass\n");
  expect(readFileSync(join(first.directory, "lib/deep/x.py"), "utf8")).toBe("X = 1\n");
  expect(existsSync(join(first.directory, "cache.bin"))).toBe(true);
  rmSync(join(first.directory, "p.py"));
  mkdirSync(join(first.directory, "p.py", "a directory"), { recursive: true });
  await upload();
  expect(readFileSync(join(first.directory, "p.py"), "utf8")).toBe("pass\n");
  expect(readdirSync(join(dataDir, "projects"))).toEqual([first.project_id]);
});

it("two deployments of the same content at the same time store one project", async () => {
  const both = await Promise.all([upload(), upload(), upload()]);
  expect(new Set(both.map(({ project_id }) => project_id)).size).toBe(1);
  expect(readdirSync(join(dataDir, "projects"))).toHaveLength(1);
});

it("all files of a new project are on the disk before anything refers to it", async () => {
  const handle = await open("/dev/null");
  const prototype = Object.getPrototypeOf(handle) as FileHandle;
  await handle.close();
  const synced: string[] = [];
  const sync = prototype.sync;
  vi.spyOn(prototype, "sync").mockImplementation(function (this: FileHandle) {
    synced.push(readlinkSync(`/proc/self/fd/${this.fd}`).replace(/.*\/projects(\/\.incoming-\w+)?/, ""));
    return sync.call(this);
  });
  const { directory: project } = await upload();
  expect(synced.slice().sort()).toEqual([
    ...["", "/project", "/project/lib", "/project/lib/deep", "/project/lib/deep/x.py", "/project/p.py"],
  ]);
  // The name of the project itself comes last.
  expect(synced.at(-1)).toBe("");
  synced.length = 0;
  truncateSync(join(project, "p.py"));
  await upload();
  expect(synced).toEqual(["/project/p.py", project.replace(/.*\/projects/, "")]);
});
