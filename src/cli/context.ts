/** What every verb gets: where to print, how to reach the server, how the user wants to see things. */
import type { CreatedKey, KeyScope } from "../contracts/keys.ts";
import type { Client } from "./client.ts";

export interface CliContext {
  client: Client;
  /** Looks again where the server is, and which key it takes: it may have been started since. */
  reconnect: () => CliContext;
  /** The environment that `client` speaks to. */
  environment: string;
  output: "table" | "json";
  /** `-a`: the declarative application that a verb is about. */
  app: string | undefined;
  /** Data only. Resolves when more may be printed. */
  out: (text: string) => Promise<void>;
  /** The same in place of what was printed before. */
  outAnew: (text: string) => Promise<void>;
  /** Progress, hints, messages. */
  err: (text: string) => void;
  /** The same in place of the line before, where `isInteractive`. */
  errLine: (text: string) => void;
  /** Asks a question on the terminal; resolves to the line that is the answer. */
  ask: (question: string) => Promise<string>;
  /** Whether stderr is a terminal that may show a moving bar. */
  isInteractive: boolean;
  /** Whether a person reads what is printed: neither data nor messages go into a file or a pipe. */
  isTerminal: boolean;
  /** `-y`: nobody is asked. */
  isYes: boolean;
  /** `-w`: again every two seconds. */
  isWatch: boolean;
  files: { environments: string; dataDir: string; examples: string };
  /** The interpreter that predictors run with. */
  python: string;
  /** What is wrong with the database of the data directory; undefined where it fits, or there is none yet. */
  databaseFault: () => Promise<string | undefined>;
  /** Makes a key in a data directory that no server uses. */
  createKeyOffline: (dataDir: string, scope: KeyScope, api: string | null) => Promise<CreatedKey>;
}

/** The exit codes (docs/contract/command-line.md#exit-codes). */
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
