/** The path of everything below the data directory. No other file builds such a path. */
import { join } from "node:path";

/** State of the server. */
export const databaseFile = (dataDir: string) => join(dataDir, "quern.db");
/**
 * Exists while a server uses the database. If a server finds it at its start, the previous server did not stop cleanly.
 */
export const databaseInUseFile = (dataDir: string) => join(dataDir, "quern.db.in-use");
/** The database of an older release, as it was before it was migrated from this version of the schema. */
export const formerDatabaseFile = (dataDir: string, schema: number) =>
  `${databaseFile(dataDir)}.${schema}.bak`;
/** Exists while the database is migrated. */
export const migratingFile = (dataDir: string) => join(dataDir, "quern.db.migrating");
/** Tells a copy of the directory from the original. */
export const instanceFile = (dataDir: string) => join(dataDir, "instance.json");
/** Which start of a server with `--state` used the directory last. */
export const stateCacheFile = (dataDir: string) => join(dataDir, "state-cache.json");
export const lockFile = (dataDir: string) => join(dataDir, "lock");
/** The process id of the lock's owner, for other processes' messages. */
export const lockOwnerFile = (dataDir: string) => join(dataDir, "lock.holder");
/** The snapshot that gateways start from. */
export const routesFile = (dataDir: string) => join(dataDir, "routes.json");
/** The address at which the command line finds the control plane. */
export const addressFile = (dataDir: string) => join(dataDir, "address");
export const adminTokenFile = (dataDir: string) => join(dataDir, "admin-token");
/** The hash of the admin token before, and when it ends. */
export const formerAdminTokenFile = (dataDir: string) => join(dataDir, "admin-token.former");
/** The port of the listener for user code. */
export const apiPortFile = (dataDir: string) => join(dataDir, "api-port");
/** Files that need not outlive the process. */
export const temporaryDirectory = (dataDir: string) => join(dataDir, "temporary");
/**
 * The notes of batch workers about the batch in hand. They are not beside the sockets, because a reboot empties that
 * directory.
 */
export const notesDirectory = (dataDir: string) => join(dataDir, "notes");

/** Python environments, by the hash of their content. */
export const environmentsDirectory = (dataDir: string) => join(dataDir, "environments");
/** Projects as they were deployed, by the hash of their content. */
export const projectsDirectory = (dataDir: string) => join(dataDir, "projects");
export const projectDirectory = (dataDir: string, projectId: string) =>
  join(projectsDirectory(dataDir), projectId);

/** Files of jobs. A job's directory is removed with the job. */
export const jobsDirectory = (dataDir: string) => join(dataDir, "jobs");
export const jobDirectory = (dataDir: string, jobId: string) => join(jobsDirectory(dataDir), jobId);
/** The items of an inline submission, and copied lines. */
export const itemsFile = (dataDir: string, jobId: string) =>
  join(jobDirectory(dataDir, jobId), "items.jsonl");

/** The rows that workers returned, until they are in the job's output: files of rows, and where each batch has its own. */
export const rowsDirectory = (dataDir: string, jobId: string) => join(jobDirectory(dataDir, jobId), "rows");

/** Outputs that the server keeps itself, by job. */
export const outputsDirectory = (dataDir: string) => join(dataDir, "outputs");
export const outputDirectory = (dataDir: string, jobId: string) => join(outputsDirectory(dataDir), jobId);

/** Artifacts of declarative applications. */
export const applicationsDirectory = (dataDir: string) => join(dataDir, "applications");
export const applicationDirectory = (dataDir: string, name: string) =>
  join(applicationsDirectory(dataDir), name);

/** The audit log; the logs of workers are below it. */
export const logsDirectory = (dataDir: string) => join(dataDir, "logs");
/** A line for each request to a real-time API, with `--access-log`. */
export const accessLogFile = (dataDir: string) => join(logsDirectory(dataDir), "access.log");
export const apiLogDirectory = (dataDir: string, apiName: string) =>
  join(logsDirectory(dataDir), "apis", apiName);
export const jobLogDirectory = (dataDir: string, jobId: string) =>
  join(logsDirectory(dataDir), "jobs", jobId);
export const applicationLogDirectory = (dataDir: string, name: string) =>
  join(logsDirectory(dataDir), "applications", name);

/** What a backup is made of, while it is sent. */
export const backupsDirectory = (dataDir: string) => join(dataDir, "backups");

/** Sockets in the runtime directory of a running server: one for the control plane, one for gateways only. */
export const controllerSocket = (runtimeDir: string) => join(runtimeDir, "controller.sock");
export const internalSocket = (runtimeDir: string) => join(runtimeDir, "internal.sock");
