/** Writes a snapshot as a tar archive (manifest.ts). */
import { createHash } from "node:crypto";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { Header, type HeaderData, Pax } from "tar";
import { CHECKSUMS, checksumLine, MANIFEST } from "./manifest.ts";
import type { BackupEntry, Snapshot } from "./take-backup.ts";

const BLOCK = 512;
const READ_BYTES = 256 * 1024;

/** Chunks of the archive. The files that it names are read as it is written. */
export async function* archiveOf({
  manifest,
  directory,
  entries,
}: Snapshot): AsyncGenerator<Uint8Array<ArrayBufferLike>> {
  let sums = "";
  const ownFile = (path: string, text: string) => {
    const body = Buffer.from(text);
    sums += checksumLine(path, createHash("sha256").update(body).digest("hex"));
    return Buffer.concat([headOf({ path, bytes: body.length, mode: 0o600 }), body, paddingOf(body.length)]);
  };
  yield ownFile(MANIFEST, `${JSON.stringify(manifest)}\n`);
  for (const entry of entries) {
    yield headOf(entry);
    if (entry.bytes === undefined) continue;
    const hash = createHash("sha256");
    for await (const chunk of bytesOf(join(directory, entry.path), entry.bytes)) {
      hash.update(chunk);
      yield chunk;
    }
    yield paddingOf(entry.bytes);
    sums += checksumLine(entry.path, hash.digest("hex"));
  }
  yield Buffer.concat([ownFile(CHECKSUMS, sums), Buffer.alloc(2 * BLOCK)]);
}

function headOf({ path, bytes, mode }: BackupEntry): Buffer {
  const data: HeaderData = {
    path: bytes === undefined ? `${path}/` : path,
    mode,
    size: bytes ?? 0,
    type: bytes === undefined ? "Directory" : "File",
    mtime: new Date(0),
    uid: 0,
    gid: 0,
  };
  const header = new Header(data);
  const block = Buffer.alloc(BLOCK);
  const needsMore = header.encode(block, 0);
  if (!needsMore) return block;
  return Buffer.concat([...moreOf(data.path!, data.size!), block]);
}

/**
 * Entries before another one, with its long path and large size (POSIX.1-2001, pax). A path with a line break is in GNU's
 * form: node-tar takes each line of the other for a field.
 */
function moreOf(path: string, size: number): Buffer[] {
  if (!path.includes("\n")) return [new Pax({ path, size }).encode()];
  const name = Buffer.from(`${path}\0`);
  const head = Buffer.alloc(BLOCK);
  new Header({ path: "././@LongLink", type: "NextFileHasLongPath", size: name.length, mode: 0o600 }).encode(
    head,
    0,
  );
  return [new Pax({ size }).encode(), head, name, paddingOf(name.length)];
}

/** The first `length` bytes: a file that grows is longer by now. */
async function* bytesOf(path: string, length: number): AsyncGenerator<Uint8Array> {
  const file = await open(path, "r");
  try {
    for (let at = 0; at < length; ) {
      const buffer = Buffer.allocUnsafe(Math.min(READ_BYTES, length - at));
      const { bytesRead } = await file.read(buffer, 0, buffer.length, at);
      if (bytesRead === 0) throw new Error(`${path} ends at ${at} instead of ${length}`);
      yield buffer.subarray(0, bytesRead);
      at += bytesRead;
    }
  } finally {
    await file.close();
  }
}

function paddingOf(bytes: number): Buffer {
  return Buffer.alloc((BLOCK - (bytes % BLOCK)) % BLOCK);
}
