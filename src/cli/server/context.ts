/** The dependencies of all verbs: where to print, how to reach the server, and the user's preferences. */
import type { CreatedKey, NewKey } from "../../contracts/keys.ts";
import type { Client } from "./client.ts";

export interface CliContext {
  client: Client;
  /** Reads the server's address and key again, because the server may have been started since. */
  reconnect: () => CliContext;
  /** The environment that `client` uses. */
  environment: string;
  output: "table" | "json";
  /** `-a`: the declarative application of a verb. */
  app: string | undefined;
  /** Prints data only. Resolves when more can be printed. */
  out: (text: string) => Promise<void>;
  /** Writes bytes that no terminal shows. Resolves when more can be written. */
  outBytes: (bytes: Uint8Array) => Promise<void>;
  /** Prints data in place of the previous output. */
  outAnew: (text: string) => Promise<void>;
  /** Prints progress, hints and messages. */
  err: (text: string) => void;
  /** Prints a message in place of the previous line, if `isInteractive`. */
  errLine: (text: string) => void;
  /** Asks a question on the terminal. Resolves to the line that was entered. */
  ask: (question: string) => Promise<string>;
  /** Whether stderr is a terminal that may show a moving bar. */
  isInteractive: boolean;
  /** Whether a person reads the output: neither data nor messages go into a file or a pipe. */
  isTerminal: boolean;
  /** The program that opens an address in the user's browser; undefined without a desktop. */
  browserOpener: string | undefined;
  /** `-y`: ask no questions. */
  isYes: boolean;
  /** `-w`: repeat every two seconds. */
  isWatch: boolean;
  files: { environments: string; dataDir: string; examples: string };
  /** The interpreter that predictors run with. */
  python: string;
  /** What the data directory's database is; `cure` if something is wrong with it. */
  checkDatabase: () => Promise<{ detail: string; cure?: string }>;
  /** Undefined if the server has no state in an object store. */
  checkState: () => Promise<{ detail: string; cure?: string } | undefined>;
  /** The pods of Quern in the cluster that the kubeconfig names. Rejects if there is no such cluster. */
  openCluster: (asked: ClusterPods) => Promise<FollowedCluster>;
  /** Saves and restores backups. */
  savedBackups: () => Promise<{
    targetProblem: (to: string) => string | undefined;
    saveBackup: (to: string, chunks: AsyncIterable<Uint8Array>) => Promise<void>;
    restoreFrom: (
      from: string,
      dataDir: string,
    ) => Promise<{ taken_time: string; apis: number; jobs: number; unfinished: number }>;
  }>;
  /** Whether any key was created in a data directory, or its database. */
  hasAnyKey: (dataDir: string) => Promise<boolean>;
  /** Creates a key in a data directory that no server uses. */
  createKeyOffline: (dataDir: string, asked: NewKey) => Promise<CreatedKey>;
}

/** Which pods: those with these labels in this namespace. `owner`: the name of the object that creates them. */
export interface ClusterPods {
  namespace: string;
  labelSelector: string;
  owner: string;
}

/** What a pod does, and why it does not serve. */
export interface PodFound {
  name: string;
  /** `ready`, or another phase of src/kubernetes/pod-state.ts. */
  phase: string;
  reason?: string;
  detail?: string;
  cure?: string;
}

export type ClusterFound =
  | {
      server: string;
      /** Of Kubernetes. */
      version: string;
      pods: PodFound[];
      /** Why there are no pods, if the cluster says so. */
      lack: string | undefined;
    }
  | { server: string; detail: string; cure: string };

export interface FollowedCluster {
  read(): Promise<ClusterFound>;
  /** Calls `onPods` after each change of a pod, with all of them, until `close`. */
  follow(onPods: (pods: PodFound[]) => void, onFailure: (error: Error) => void): Promise<void>;
  close(): Promise<void>;
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
  /** The code of the server's error; undefined if it is none of a server. */
  readonly code: string | undefined;

  constructor(message: string, exitCode: number, code?: string) {
    super(message);
    this.exitCode = exitCode;
    this.code = code;
  }
}
