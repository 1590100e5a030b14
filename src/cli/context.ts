/** What every verb gets: where to print, how to reach the server, how the user wants to see things. */
import type { Client } from "./client.ts";

export interface CliContext {
  client: Client;
  output: "table" | "json";
  /** Data only. */
  out: (text: string) => void;
  /** Progress, hints, messages. */
  err: (text: string) => void;
  /** Whether stderr is a terminal that may show a moving bar. */
  isInteractive: boolean;
}

/** The exit codes of decision 6. */
export const EXIT = {
  success: 0,
  failed: 1,
  usage: 2,
  notAllowed: 3,
  notFound: 4,
  conflict: 5,
  unreachable: 6,
  jobFailed: 10,
  jobCompletedWithFailures: 11,
  jobStopped: 12,
  jobTimedOut: 13,
  timeout: 124,
} as const;

export class CliError extends Error {
  readonly exitCode: number;

  constructor(message: string, exitCode: number) {
    super(message);
    this.exitCode = exitCode;
  }
}
