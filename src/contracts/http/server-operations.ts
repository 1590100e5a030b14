/** The operations on the server as a whole: its state, numbers and audit, and the proof that it is the one asked for. */
import { DURATION_PATTERN } from "../keys.ts";
import { NONCE_PATTERN, PROOF_PATH } from "../server-proof.ts";
import { healthSchema, messageSchema, proofSchema, versionSchema } from "./answers.ts";
import { CONTROL_ERRORS, follow, type Operation, text } from "./operation.ts";

export const SERVER_OPERATIONS: readonly Operation[] = [
  {
    id: "unpauseJobs",
    method: "post",
    path: "/-/jobs/unpause",
    about: "continue all paused jobs",
    scope: "admin",
    parameters: [],
    answers: { "application/json": messageSchema },
    errors: [...CONTROL_ERRORS, "origin_not_allowed"],
  },
  {
    id: "takeBackup",
    method: "post",
    path: "/-/backups",
    about:
      "take a backup of the server's state: a tar archive that ends with the checksums of its files. It contains secrets",
    scope: "admin",
    parameters: [],
    answers: { "application/x-tar": null },
    errors: [...CONTROL_ERRORS, "origin_not_allowed", "wrong_state", "not_supported_yet", "disk_full"],
  },
  {
    id: "getMetrics",
    method: "get",
    path: "/-/metrics",
    about: "metrics for Prometheus",
    scope: "view",
    parameters: [],
    answers: { "text/plain": null },
    errors: CONTROL_ERRORS,
  },
  {
    id: "readAudit",
    method: "get",
    path: "/-/audit",
    about: "changes with who made them, and refused requests: JSON lines, oldest first",
    scope: "view",
    parameters: [
      { name: "key", in: "query", about: "only by this key's id, or this subject of a token", schema: text },
      {
        name: "since",
        in: "query",
        about: "not older than this, such as 1h or 30m",
        schema: { type: "string", pattern: DURATION_PATTERN.source },
      },
      follow,
    ],
    answers: { "application/x-ndjson": null },
    errors: [...CONTROL_ERRORS, "invalid_request"],
  },
  {
    id: "getVersion",
    method: "get",
    path: "/-/version",
    about: "the server's version",
    scope: "view",
    parameters: [],
    answers: { "application/json": versionSchema },
    errors: CONTROL_ERRORS,
  },
  {
    id: "getHealth",
    method: "get",
    path: "/-/healthz",
    about: "whether something needs a person, and the state of each API",
    scope: "view",
    parameters: [],
    answers: { "application/json": healthSchema },
    errors: [...CONTROL_ERRORS, "unhealthy"],
  },
  {
    id: "proveServer",
    method: "get",
    path: PROOF_PATH,
    about:
      "a code that only the server of a data directory can compute; the command line requests it before it sends the admin token",
    scope: undefined,
    parameters: [
      {
        name: "nonce",
        in: "query",
        about: "64 random hexadecimal digits",
        schema: { type: "string", pattern: NONCE_PATTERN.source },
        required: true,
      },
    ],
    answers: { "application/json": proofSchema },
    errors: ["invalid_request", "server_unavailable"],
  },
  {
    id: "isAlive",
    method: "get",
    path: "/-/livez",
    about: "whether the gateway runs",
    scope: undefined,
    parameters: [],
    answers: { "text/plain": null },
    errors: [],
  },
  {
    id: "isReady",
    method: "get",
    path: "/-/readyz",
    about: "whether this server takes requests. With `?standby=ok`, 200 on a standby too",
    scope: undefined,
    parameters: [
      {
        name: "standby",
        in: "query",
        about: "`ok`: 200 on a standby too, for probes that count servers; anything else changes nothing",
        schema: { type: "string" },
      },
    ],
    answers: { "text/plain": null },
    errors: ["server_unavailable"],
  },
];
