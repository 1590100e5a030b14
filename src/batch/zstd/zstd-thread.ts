/** The thread of one stream that is compressed (thread-compressor.ts): it answers each piece, and null for the end. */
import { parentPort } from "node:worker_threads";
import { Zstd } from "@hpcc-js/wasm-zstd";
import { ZSTD_LEVEL } from "../../contracts/limits/outputs.ts";

const zstd = await Zstd.load();
zstd.setCompressionLevel(ZSTD_LEVEL);
zstd.reset();

parentPort!.on("message", (piece: Uint8Array | null) => {
  const packed = piece === null ? zstd.compressEnd() : zstd.compressChunk(piece);
  parentPort!.postMessage(packed, [packed.buffer as ArrayBuffer]);
});
