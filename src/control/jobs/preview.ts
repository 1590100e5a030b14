/**
 * Streams the response of a dry run, so that a million files are not held in memory
 * (docs/contract/submitting.md#dry-run-answer).
 */
import type { Context } from "hono";
import type { Preview } from "../../batch/submit/preview-submission.ts";
import type { OpenStreams } from "../answers/open-streams.ts";

/** `Accept: text/plain` gives one path per line, as in Cortex. Otherwise the response is the JSON object. */
export function previewResponse(c: Context, { lists }: { lists: OpenStreams }, preview: Preview): Response {
  const isText = (c.req.header("accept") ?? "").includes("text/plain");
  return isText
    ? lists.answer(c, pathLines(preview), "text/plain; charset=utf-8")
    : lists.answer(c, jsonObject(preview), "application/json");
}

async function* pathLines({ files }: Preview): AsyncGenerator<string> {
  for await (const page of files) yield page.map(({ path }) => `${path}\n`).join("");
  yield "validations passed\n";
}

async function* jsonObject({ files, batchCount }: Preview): AsyncGenerator<string> {
  let file_count = 0;
  let total_bytes = 0;
  yield '{"files":[';
  for await (const page of files) {
    const paths = page.map(({ path }) => JSON.stringify(path)).join(",");
    yield file_count === 0 ? paths : `,${paths}`;
    file_count += page.length;
    for (const { bytes } of page) total_bytes += bytes ?? 0;
  }
  const rest = JSON.stringify({ file_count, total_bytes, batch_count: batchCount(file_count) ?? null });
  yield `],${rest.slice(1)}`;
}
