/** Turns a remote store's refusal or silence into one of two errors, the same for all stores. */
import { ServiceError } from "../contracts/errors.ts";

/** Refusals with a status of 4xx that another try may not meet: S3's names for what was slow, cut off or concurrent. */
const TRANSIENT = /^(RequestTimeout|IncompleteBody|ClientDisconnect|OperationAborted)$/;
/** The store has compared the bytes with the digest that was sent: they were damaged on their way. */
const DAMAGED = /\b(BadDigest|XAmzContentSHA256Mismatch|Md5Mismatch|MD5 hash .* doesn't match)/;

export interface Refusal {
  path: string;
  access: "read" | "write";
  /** HTTP status; undefined if there was no response. */
  status: number | undefined;
  /** The identity that the request had. */
  identity: string;
  /** The cure if the store denied access. */
  cure: string;
}

/** `store_forbidden` for responses that a retry would not change, `store_unreachable` for the rest. */
export function storeError(error: Error, { path, access, status, identity, cure }: Refusal): ServiceError {
  const said = describe(error);
  const { code } = error as { code?: unknown };
  if (DAMAGED.test(said) || DAMAGED.test(String(code)))
    return new ServiceError("store_unreachable", `the bytes of ${path} arrived damaged: ${said}`, {
      cause: error,
    });
  if (status !== undefined && isFinal(status) && !TRANSIENT.test(error.name)) {
    const answer = `the store answered ${status} ${said}`;
    const isDenied = status === 401 || status === 403;
    const message = isDenied
      ? `${path} may not be ${access === "read" ? "read" : "written"} with ${identity}: ${answer}; ${cure}`
      : `${path} cannot be ${access === "read" ? "read" : "written"}: ${answer}; if that is about access with ${identity}, ${cure}`;
    return new ServiceError("store_forbidden", message, { cause: error });
  }
  const what = status === undefined ? said : `it answered ${status} ${said}`;
  return new ServiceError("store_unreachable", `the store of ${path} does not respond correctly: ${what}`, {
    cause: error,
  });
}

/** 501: the store does not know what was asked of it. */
function isFinal(status: number): boolean {
  return (status >= 300 && status < 500 && status !== 408 && status !== 429) || status === 501;
}

/** The error of a refused connection has its message only in its causes. */
function describe(error: Error & { code?: string | number; errors?: Error[] }): string {
  const { name, message, code } = error;
  const inner = error.errors?.[0]?.message ?? "";
  const words = [
    name === "Error" || name === "AggregateError" ? "" : name,
    message || inner || String(code ?? ""),
  ];
  return words.filter((word, i) => word !== "" && words.indexOf(word) === i).join(": ");
}
