/**
 * Bounds the text that the failures of a running job take in the database and in dead letters
 * (docs/contract/failing-batches.md#error-budget). A short submission may have millions of failures of 32 KiB each. It
 * is counted in memory, so each run of the job has a budget of its own.
 */
import {
  ERROR_CUT_LENGTH,
  ERROR_KINDS_WHOLE_MAX,
  ERRORS_WHOLE_BYTES_MAX,
} from "../../contracts/limits/jobs.ts";
import type { WorkerFault } from "../../protocol/messages.ts";
import { errorGroup, type FailedAttempt } from "../records/batch-rows.ts";

/** The error as it is recorded, and the group of the whole one. */
type Kept = Required<Pick<FailedAttempt, "fault" | "group">>;

export class ErrorBudget {
  private leftBytes: number;
  /** Groups of which one error is whole although the budget is used up. */
  private readonly kinds = new Set<string>();
  private hasCut = false;
  private readonly jobLog: (line: string) => void;

  constructor(jobLog: (line: string) => void, bytes = ERRORS_WHOLE_BYTES_MAX) {
    this.jobLog = jobLog;
    this.leftBytes = bytes;
  }

  /** The error of something that has finally failed, cut if the budget is used up. */
  keep({ stage, type, message, traceback, evidence }: WorkerFault): Kept {
    // Without the response that an HTTPException sets: no caller waits for it.
    const fault = { stage, type, message, traceback, ...(evidence === undefined ? {} : { evidence }) };
    const group = errorGroup(fault);
    if (this.leftBytes > 0) {
      this.leftBytes -= Buffer.byteLength(JSON.stringify(fault));
      return { fault, group };
    }
    if (this.kinds.size < ERROR_KINDS_WHOLE_MAX && !this.kinds.has(group)) {
      this.kinds.add(group);
      return { fault, group };
    }
    this.logFirstCut();
    return { fault: cut(fault), group };
  }

  private logFirstCut(): void {
    if (this.hasCut) return;
    this.hasCut = true;
    this.jobLog(
      `the errors of failed batches have used up their space: from now on only ${ERROR_CUT_LENGTH} characters of each message are kept, without its traceback; one error of each new kind is still kept whole`,
    );
  }
}

function cut({ stage, type, message, evidence }: WorkerFault): WorkerFault {
  const { last_lines: _, ...numbers } = evidence ?? {};
  return {
    ...{ stage, type, message: cutMessage(message), traceback: "" },
    ...(evidence === undefined ? {} : { evidence: numbers }),
  };
}

/** Says that it was cut in the words of python/quern_runtime/faults.py. */
function cutMessage(message: string): string {
  if (message.length <= ERROR_CUT_LENGTH) return message;
  const note = `… (cut: ${message.length} characters in all)`;
  return message.slice(0, ERROR_CUT_LENGTH - note.length) + note;
}
