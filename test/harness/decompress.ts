/** Decompresses like a reader of outputs: never with Quern's own code. */
import { spawnSync } from "node:child_process";
import * as zlib from "node:zlib";
import { Zstd } from "@hpcc-js/wasm-zstd";

/** Node has it since 22.15. */
const { zstdDecompressSync } = zlib as unknown as { zstdDecompressSync?: (packed: Uint8Array) => Buffer };
const library = await Zstd.load();
/** So few that what they unpack to has fewer bytes than this. */
const PIECE_BYTES = 2 * 1024;
const UNPACKED_BYTES_MAX = 64 * 1024 * 1024;

/** By Node, or by the command `zstd`, or if there is neither by the library, which needs a second for 8 MB. */
export function unzstd(packed: Uint8Array): Buffer {
  if (zstdDecompressSync !== undefined) return zstdDecompressSync(packed);
  const { error, status, stdout, stderr } = spawnSync("zstd", ["-dcq"], {
    input: packed,
    maxBuffer: 2 ** 30,
  });
  if (error !== undefined) return byLibrary(packed);
  if (status !== 0) throw new Error(`zstd: ${stderr.toString()}`);
  return stdout;
}

/** What is damaged gives less. */
function byLibrary(packed: Uint8Array): Buffer {
  const unpacked: Uint8Array[] = [];
  library.reset();
  for (let at = 0; at < packed.length; at += PIECE_BYTES)
    unpacked.push(library.decompressChunk(packed.subarray(at, at + PIECE_BYTES), UNPACKED_BYTES_MAX));
  return Buffer.concat(unpacked);
}
