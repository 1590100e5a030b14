/** The thread that reads long submissions (read-submission.ts). */
import { serveThread } from "../../engine/side-work.ts";
import { type ParsedSubmission, parseSubmission } from "./parse-submission.ts";

/** The lines of inline items go back without a copy. */
function ownBuffers({ input }: ParsedSubmission): ArrayBuffer[] {
  return input.kind === "items" ? [input.lines.buffer as ArrayBuffer] : [];
}

serveThread(
  (body: Uint8Array) => parseSubmission(Buffer.from(body.buffer, body.byteOffset, body.byteLength)),
  ownBuffers,
);
