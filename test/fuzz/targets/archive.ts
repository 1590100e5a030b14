/** Archives of projects: unpacked or refused, and nothing outside of the project's directory is made or left. */
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { unpackProject } from "../../../src/apis/projects/project-store.ts";
import { ServiceError } from "../../../src/contracts/errors.ts";
import { mustEqual, mustHold, type Target } from "../target.ts";

const BLOCK = 512;
const dir = mkdtempSync(join(tmpdir(), "quern-fuzz-"));
const data = join(dir, "data");

async function setUp(): Promise<() => Promise<void>> {
  writeFileSync(join(dir, "config.yaml"), "not the archive's");
  return async () => rmSync(dir, { recursive: true, force: true });
}

/** A changed header would be refused for its checksum, and nothing after that check would be tested. */
function withSums(input: Buffer): Buffer {
  const archive = Buffer.from(input);
  for (let at = 0; at + BLOCK <= archive.length; at += BLOCK) {
    if (archive.toString("latin1", at + 257, at + 262) !== "ustar") continue;
    archive.fill(" ", at + 148, at + 156);
    const sum = archive.subarray(at, at + BLOCK).reduce((total, byte) => total + byte, 0);
    archive.write(`${sum.toString(8).padStart(6, "0")}\0 `, at + 148, "latin1");
  }
  return archive;
}

async function run(input: Buffer): Promise<undefined> {
  rmSync(data, { recursive: true, force: true });
  mkdirSync(data);
  try {
    const { directory } = await unpackProject(data, {
      archive: Readable.from([withSums(input)]),
      onReceived: () => {},
    });
    for (const entry of readdirSync(directory, { recursive: true, withFileTypes: true })) {
      mustHold(entry.isFile() || entry.isDirectory(), `${entry.name} is no file and no directory`);
      const { mode } = statSync(join(entry.parentPath, entry.name));
      mustHold((mode & 0o7000) === 0, `${entry.name} has the mode ${mode.toString(8)}`);
    }
  } catch (error) {
    if (!(error instanceof ServiceError) || error.status >= 500) throw error;
  }
  mustEqual(readdirSync(dir).sort(), ["config.yaml", "data"], "what is beside the data directory");
  mustEqual(readdirSync(data), ["projects"], "what is in the data directory");
  const left = readdirSync(join(data, "projects")).filter((name) => name.startsWith("."));
  mustEqual(left, [], "what is left");
  return undefined;
}

export const archive: Target = {
  dictionary: [
    ...[
      "config.yaml",
      "project/",
      "project/predictor.py",
      "../",
      "/etc/x",
      "project/../../x",
      "ustar\0" + "00",
      "ustar  \0",
    ],
    ...[
      "0000644\0",
      "0004755\0",
      "00000000012\0",
      "77777777777\0",
      "\x80\0\0\0\0\0\0\0\0\0\0\x01",
      "12 path=../x\n",
      "20 path=project/x\n",
    ],
    ...["13 size=9999\n", "0", "1", "2", "5", "7", "x", "g", "L", "K", "\0".repeat(1024)],
  ],
  maxBytes: 32 * 1024,
  covers: /\/(src\/apis|node_modules\/tar)\//,
  setUp,
  run,
};
