/** Hostile project uploads: archive bombs and YAML bombs, over real HTTP and the real command line. */
import { linkSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { archiveOf, type Entry, tarEntry } from "../harness/archives.ts";
import { eventually } from "../harness/eventually.ts";
import { ECHO, project } from "../harness/projects.ts";
import { TestServer } from "../harness/server.ts";

const server = new TestServer();
beforeAll(() => server.start());
afterAll(() => server.stop());

const CONFIG: Entry = { path: "config.yaml", body: project(ECHO)["quern.yaml"]! };
const PREDICTOR: Entry = { path: "project/predictor.py", body: ECHO };
const headers = () => ({
  authorization: `Bearer ${readFileSync(join(server.dataDir, "admin-token"), "utf8").trim()}`,
  "content-type": "application/gzip",
});
const upload = async (archive: Buffer) => {
  const response = await server.fetch("/-/deploy", { method: "POST", body: archive, headers: headers() });
  return [response.status, await response.json()] as const;
};
/** Sends `more` again and again until there is an answer. */
const uploadForEver = (first: Buffer, more: Buffer) =>
  new Promise<{ status: number; text: string }>((resolve, reject) => {
    const ask = request(`${server.baseUrl}/-/deploy`, { method: "POST", headers: headers() });
    let isAnswered = false;
    ask.on("response", (answer) => {
      isAnswered = true;
      let text = "";
      answer.setEncoding("utf8").on("data", (part: string) => {
        text += part;
      });
      answer.on("end", () => {
        ask.destroy();
        resolve({ status: answer.statusCode!, text });
      });
    });
    ask.on("error", (error) => !isAnswered && reject(error));
    const send = () => {
      if (!isAnswered) ask.write(more, () => setImmediate(send));
    };
    ask.write(first, send);
  });
const leftBehind = () => readdirSync(join(server.dataDir, "projects")).filter((name) => name.startsWith("."));

describe("an archive", () => {
  it("that unpacks from megabytes to gigabytes is refused during the upload, and leaves nothing", async () => {
    const heads = [tarEntry(CONFIG), tarEntry({ path: "project/big", size: 3 * 1024 ** 3 })];
    const zeros = gzipSync(Buffer.alloc(8 * 1024 * 1024));
    const { status, text } = await uploadForEver(gzipSync(Buffer.concat(heads)), zeros);
    expect([status, JSON.parse(text)]).toEqual([
      413,
      expect.objectContaining({ code: "body_too_large", message: expect.stringContaining(".quernignore") }),
    ]);
    await eventually("its files are gone", () => leftBehind().length === 0);
  });

  it.each<[string, Entry]>([
    ["a link to a file of the server", { path: "project/x", type: "SymbolicLink", linkpath: "/etc/passwd" }],
    ["a hard link", { path: "project/x", type: "Link", linkpath: "../../../admin-token" }],
    ["a device", { path: "project/x", type: "BlockDevice" }],
    ["a file outside", { path: "project/../../escaped", body: "x" }],
    ["a file where the directory is to be", { path: "project", body: "x" }],
  ])("with %s gets 400", async (_, entry) => {
    expect(await upload(archiveOf(CONFIG, entry))).toEqual([
      400,
      expect.objectContaining({ code: "invalid_project" }),
    ]);
    expect(leftBehind()).toEqual([]);
  });

  it("is deployed without its special permission bits", async () => {
    const [status] = await upload(archiveOf(CONFIG, { ...PREDICTOR, mode: 0o6755 }));
    expect(status).toBe(200);
  });

  it("has a file for each hard link if the command line made it", async () => {
    const directory = join(server.dir, "linked");
    mkdirSync(directory);
    for (const [name, text] of Object.entries(project(ECHO))) writeFileSync(join(directory, name), text);
    writeFileSync(join(directory, "a.txt"), "linked");
    linkSync(join(directory, "a.txt"), join(directory, "b.txt"));
    expect(server.cli(["deploy", directory])).toMatchObject({ code: 0 });
    const projects = readdirSync(join(server.dataDir, "projects"));
    const linked = projects.filter((id) =>
      readdirSync(join(server.dataDir, "projects", id)).includes("b.txt"),
    );
    expect(linked).toHaveLength(1);
  });
});

describe("YAML", () => {
  const laughs = Array.from(
    { length: 10 },
    (_, i) =>
      `- &a${i} [${
        i === 0
          ? "ha"
          : Array(10)
              .fill(`*a${i - 1}`)
              .join(", ")
      }]\n`,
  ).join("");
  const api = (config: string) =>
    `- name: echo\n  predictor:\n    path: predictor.py\n    config: ${config}\n`;

  it.each([
    ["ten thousand million values", laughs, "add more than 100000 values"],
    ["a configuration inside itself", api("&c {deep: *c}"), "inside its own anchor"],
    ["an anchor that is not there", api("*nobody"), "no anchor &nobody"],
    ["a YAML binary value", api("{x: !!binary aGVsbG8=}"), "leave the tag out"],
    ["a list as a key", api("{[1, 2]: x}"), "a key is a list or a map"],
    ["lists in lists", api(`${"[".repeat(3_000)}${"]".repeat(3_000)}`), "deeper than 100"],
  ])("with %s gets 400 with line and column", async (_, text, message) => {
    const [status, answer] = await upload(archiveOf({ path: "config.yaml", body: text }, PREDICTOR));
    expect([status, answer]).toEqual([
      400,
      expect.objectContaining({ code: "invalid_configuration", message: expect.stringContaining(message) }),
    ]);
  });

  it("is refused with line and column by the command line too", () => {
    const directory = join(server.dir, "yaml");
    mkdirSync(directory, { recursive: true });
    writeFileSync(join(directory, "quern.yaml"), laughs);
    writeFileSync(join(directory, "predictor.py"), ECHO);
    for (const command of ["check", "deploy"])
      expect(server.cli([command, directory])).toMatchObject({
        code: 1,
        err: expect.stringMatching(/quern\.yaml:6:\d+: .*add more than 100000 values/),
      });
  });
});
