/**
 * Why a server ends itself before it was ever ready: the causes that waiting does not cure, so a person must act.
 * Everything else (a full disk, no memory, no free process or file, a database that another process has locked) is
 * tried again with a back-off.
 */
export const CANNOT_START = {
  data_directory_in_use: "another running Quern uses the data directory",
  data_directory_unusable: "this user cannot create, open or write the data directory",
  data_directory_newer: "a newer Quern wrote the database",
  database_missing:
    "the database is missing, empty, new or another directory's, but the data directory has other data",
  database_damaged: "the database cannot be read, or fails its check",
  database_in_use: "another running Quern uses the database",
  database_unusable: "PostgreSQL refuses the user or the database, or is not one that Quern can use",
  state_unusable: "the store of --state refuses the server, or has no conditional writes",
  state_mismatch: "the state belongs to another database, or the database to another state",
  no_postgres_client: "the package of PostgreSQL's client is not installed",
  no_sqlite: "this Node has no SQLite",
  option_unusable: "an option names something that does not exist or is not valid",
} as const;

export class CannotStart extends Error {
  readonly why: keyof typeof CANNOT_START;

  constructor(why: keyof typeof CANNOT_START, message: string, cause?: unknown) {
    super(message, { cause });
    this.name = "CannotStart";
    this.why = why;
  }
}

/** Whether a system call on the data directory failed for a reason that another user or another mount must fix. */
export function isNotForUs(error: unknown): boolean {
  return ["EACCES", "EPERM", "EROFS", "ENOTDIR", "ELOOP", "ENAMETOOLONG"].includes(
    String((error as NodeJS.ErrnoException).code),
  );
}
