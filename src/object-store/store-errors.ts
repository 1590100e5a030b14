/** What a remote store's refusal or silence means for a user: the same two errors for all stores. */
import { ServiceError } from "../contracts/errors.ts";

export interface Refusal {
  path: string;
  /** HTTP status; undefined where there was no answer. */
  status: number | undefined;
  /** As whom we asked. */
  identity: string;
  /** What to do where the store does not let us in. */
  cure: string;
}

/** `store_forbidden` for answers that stay the same when asked again, `store_unreachable` for the rest. */
export function storeError(error: Error, { path, status, identity, cure }: Refusal): ServiceError {
  const said = describe(error);
  if (status !== undefined && status >= 300 && status < 500 && status !== 408 && status !== 429)
    return new ServiceError(
      "store_forbidden",
      `${path} may not be read with ${identity}: the store answered ${status} ${said}; ${cure}`,
      { cause: error },
    );
  const what = status === undefined ? said : `it answered ${status} ${said}`;
  return new ServiceError("store_unreachable", `the store of ${path} does not answer as it should: ${what}`, {
    cause: error,
  });
}

/** A refused connection has its words in the causes only. */
function describe(error: Error & { code?: string | number; errors?: Error[] }): string {
  const { name, message, code } = error;
  const inner = error.errors?.[0]?.message ?? "";
  const words = [
    name === "Error" || name === "AggregateError" ? "" : name,
    message || inner || String(code ?? ""),
  ];
  return words.filter((word, i) => word !== "" && words.indexOf(word) === i).join(": ");
}
