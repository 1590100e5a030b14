/** A dry run: passes the checks of a submission, and previews its files (docs/contract/submitting.md#dry-run-answer). */
import { wallMs } from "../../base/clock.ts";
import type { Statements } from "../../database/database.ts";
import { type SelectedFile, selectFiles } from "../../object-store/select/select-files.ts";
import { type CheckDeps, checkedSubmission } from "./check-submission.ts";
import { findSubmission, submissionKey } from "./idempotency.ts";
import type { SentSubmission } from "./read-submission.ts";
import type { SubmittedTo } from "./submit-job.ts";

export interface Preview {
  /** Pages of the selected files; none for inline items. */
  files: AsyncGenerator<SelectedFile[]>;
  /** Undefined if it depends on the content of the files. */
  batchCount: (files: number) => number | undefined;
}

/** Throws what `submitJob` throws, and creates no job. The listing ends when the client is gone. */
export async function previewSubmission(
  deps: CheckDeps & { db: Statements },
  { name, output }: Omit<SubmittedTo, "api_id">,
  sent: SentSubmission,
): Promise<Preview> {
  const { body, idempotencyKey, left } = sent;
  // A key that was used for another body is refused.
  if (idempotencyKey !== undefined)
    await findSubmission(deps.db, await submissionKey(name, idempotencyKey, body), wallMs());
  const { input } = await checkedSubmission(deps, sent, output);
  const { batch_size } = input;
  if (input.kind === "items")
    return { files: noFiles(), batchCount: () => Math.ceil(input.count / batch_size) };
  return {
    files: selectFiles(deps.store, input, { sizes: true, signal: left }),
    batchCount: (files) => (input.kind === "paths" ? Math.ceil(files / batch_size) : undefined),
  };
}

async function* noFiles(): AsyncGenerator<SelectedFile[]> {}
