/** Errors of writing a file, in the words of all stores. Pure. */
import { shortageOf } from "../../base/disk-full.ts";
import { ServiceError } from "../../contracts/errors.ts";
import { DIRECTORY_CHECK_MS } from "../../contracts/limits/stores.ts";
import { TookTooLong } from "../at-most.ts";

/** Of a network file system whose server is away. */
const AWAY: ReadonlySet<string> = new Set([
  "EIO",
  "ESTALE",
  "ETIMEDOUT",
  "EHOSTDOWN",
  "ENOTCONN",
  "EREMOTEIO",
]);
const DENIED: ReadonlySet<string> = new Set(["EACCES", "EPERM", "EROFS"]);
/** No file can have this address. */
const IMPOSSIBLE: ReadonlySet<string> = new Set(["ENOTDIR", "EISDIR", "ENAMETOOLONG", "ELOOP", "EINVAL"]);

/** The system's errors in the words of all stores; a shortage of this machine stays what it is. */
export function writeError(error: unknown, path: string): unknown {
  const { code = "" } = error as NodeJS.ErrnoException;
  if (error instanceof ServiceError || shortageOf(error) !== undefined) return error;
  if (error instanceof TookTooLong) return checkedTooLong(path, error);
  if (DENIED.has(code))
    return new ServiceError(
      "store_forbidden",
      `this server may not write ${path} (${code}); give its user permission to write into the directory`,
      { cause: error },
    );
  if (IMPOSSIBLE.has(code))
    return new ServiceError(
      "path_not_allowed",
      `"${path}" cannot be written (${code}); choose another name`,
      {
        cause: error,
      },
    );
  // ENOENT: somebody removes the directory meanwhile. The next try makes it again.
  if (AWAY.has(code) || code === "ENOENT")
    return new ServiceError("store_unreachable", `${path} could not be written (${code})`, { cause: error });
  return error;
}

function checkedTooLong(path: string, cause: TookTooLong): ServiceError {
  const message = `the server could not find out within ${DIRECTORY_CHECK_MS / 1000} s whether ${path} can be written; the directory, or another one that is checked, does not respond`;
  return new ServiceError("store_unreachable", message, { cause });
}
