/** One request at one of the gateway's listeners. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { HostRules } from "../access/host-check.ts";
import type { ListenerName } from "../contracts/forwarded.ts";

/** A listening socket, and what is reachable through it. */
export interface Entrance {
  name: ListenerName;
  /** Whether the control plane is reachable. */
  hasControl: boolean;
  rules: HostRules;
}

export interface Visit {
  request: IncomingMessage;
  response: ServerResponse;
  requestId: string;
  entrance: Entrance;
}
