/**
 * What processes of Quern tell each other by messages: a program that starts a server for itself, the controller the
 * parent, and the parent its gateways.
 */

/** The server ends when its starter does, however that ends. */
export const END_WITH_ME = "end with me";

/** The server that has the database, for one that waits. */
export interface ActiveServer {
  /** The name of its machine or pod; empty if it does not say that. */
  host: string;
  /** Where it listens, and its data directory: for people at this machine. Empty as well. */
  place: string;
  /** Since when it has the database. */
  since: string;
}

/** Who has the database of this server. */
export interface StandbyMessage {
  /** Null if this server has the database itself. */
  standby: ActiveServer | null;
}

export function isStandbyMessage(message: unknown): message is StandbyMessage {
  return typeof message === "object" && message !== null && "standby" in message;
}

/** `the server on HOST`, for messages. */
export function activeServerWords({ host }: ActiveServer): string {
  return host === "" ? "another server" : `the server on ${host}`;
}
