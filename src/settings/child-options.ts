/**
 * The message with which the parent starts a gateway or the controller: the server's options, and facts about this run.
 */
import { SERVER_SETTING_NAMES, type ServerOptions } from "./server-options.ts";

/** Facts about one run that no setting contains. */
export interface RunOptions {
  /** The directory of the sockets. */
  runtimeDir: string;
  /** The control group that was delegated to the server (engine/delegated-cgroup.ts). */
  delegatedCgroup: string | undefined;
  /** The resources of the machine. */
  machine: { cpuMillis: number; memoryBytes: number };
  parentPid: number;
  /** The port on loopback where gateways listen for calls from user code. */
  apiPort: number;
  /** The main listener's address for clients on this machine. */
  mainUrl: string;
}

export type ChildOptions = ServerOptions & RunOptions;

/**
 * Writes the message with which a child starts. It has the values, not the texts: a child has another working
 * directory, and must start even if a file that an option names is being replaced.
 */
export function writeChildOptions(options: ServerOptions, run: RunOptions): string {
  return JSON.stringify({ settings: SERVER_SETTING_NAMES, ...options, ...run });
}

/** Throws if the parent has another table of settings: Quern was upgraded, and the server was not restarted. */
export function readChildOptions(message: string): ChildOptions {
  const { settings, ...options } = JSON.parse(message) as ChildOptions & { settings?: string[] };
  if (String(settings) === String(SERVER_SETTING_NAMES)) return options;
  throw new Error("the server was started by another release of Quern: restart it");
}
