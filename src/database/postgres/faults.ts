/**
 * What an error of PostgreSQL means for the work that met it. Pure
 * (docs/decisions/0028-postgresql.md).
 */

/**
 * - `again`: the server has rolled the transaction back, and the connection is fine. The work may run again.
 * - `lost`: the connection is gone, or is of no use. Without a COMMIT, nothing was changed. With one, nobody knows.
 * - undefined: the statement is at fault, so that another try would fail too.
 */
export type PostgresFault = "again" | "lost" | undefined;

/** A serialization failure, a deadlock, a lock that is not free, a statement that took too long, no memory. */
const AGAIN = new Set(["40001", "40P01", "55P03", "57014", "53200"]);
/**
 * Classes and codes of a server that cannot serve, whatever the statement: connection exceptions (08), shut down, killed
 * or starting (57P), too many connections, read-only because it is a standby, a session that was idle
 * or waited for us for too long.
 */
const LOST = /^(08...|57P0.|53300|25006|25P03|25P04)$/;
/** Codes of Node's sockets; ENOENT if the server's socket is a file that is not there. */
const SOCKET =
  /^(ECONN\w+|EPIPE|ETIMEDOUT|EHOSTUNREACH|EHOSTDOWN|ENETUNREACH|ENETDOWN|EAI_AGAIN|ENOTFOUND|ENOENT|EADDRNOTAVAIL|EPROTO)$/;
/** Errors of the client itself, which have no code. */
const CLIENT =
  /^(Connection terminated|Client has encountered a connection error|timeout e|Client was closed)/;

/** For errors of the client only: those of the work around the statements have the same codes. */
export function faultOf(error: unknown): PostgresFault {
  const { code, severity, message } = (error ?? {}) as Record<string, unknown>;
  // A FATAL error ends the session, whatever its code.
  if (severity === "FATAL" || severity === "PANIC") return "lost";
  if (AGAIN.has(String(code))) return "again";
  if (LOST.test(String(code)) || SOCKET.test(String(code))) return "lost";
  return code === undefined && CLIENT.test(String(message)) ? "lost" : undefined;
}

/** The connection is gone, or was given up. */
export class ConnectionLost extends Error {
  constructor(cause: unknown) {
    super(inWords(cause), { cause });
    this.name = "ConnectionLost";
  }
}

/** The server has rolled back the transaction, and the same work may succeed. */
export class RolledBack extends Error {
  constructor(cause: unknown) {
    super(inWords(cause), { cause });
    this.name = "RolledBack";
  }
}

/** The error of `kind` that `error` is, or that caused it. */
export function findCause<T extends Error>(error: unknown, kind: new (cause: unknown) => T): T | undefined {
  for (let at = error; at instanceof Error; at = at.cause) if (at instanceof kind) return at;
  return undefined;
}

/** Node's codes for a certificate that is not trusted, not valid, or another host's. */
const CERTIFICATE = /^(ERR_TLS_|ERR_SSL_|CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|HOSTNAME_MISMATCH)/;

/**
 * Whether the first connection fails for a reason that a person must fix: an address, a password, a name, a permission,
 * a certificate. Later the same errors are waited for, because a server that serves does not end itself.
 */
export function isSetUpWrong(error: unknown): boolean {
  const { code, message, syscall } = (error ?? {}) as Record<string, unknown>;
  // The client reads the address, and the files of certificates that it names.
  if (error instanceof URIError || syscall === "open") return true;
  if (/^(28...|3D000|3F000|42501)$/.test(String(code)) || CERTIFICATE.test(String(code))) return true;
  return /SASL|does not support SSL/.test(String(message));
}

/** An error in words: Node reports an unreachable host of two addresses without a message. */
export function inWords(error: unknown): string {
  const { code, message } = (error ?? {}) as { code?: unknown; message?: unknown };
  return String(message || code || error);
}

/** The pause before try number `tries` (from 0). It grows, and half of it is chance, so that servers do not try at once. */
export function pauseMs(
  tries: number,
  { firstMs, maxMs }: { firstMs: number; maxMs: number },
  chance: number,
): number {
  const longMs = Math.min(maxMs, firstMs * 2 ** Math.min(tries, 30));
  return longMs * (0.5 + chance / 2);
}
