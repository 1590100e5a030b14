/** Limits of the conversation with workers in pods. */

/** A launcher answers from memory; a pod that is gone does not answer at all. */
export const LAUNCHER_SILENT_MAX_MS = 3_000;
/** Ten lines of a worker's output, and some fields. */
export const LAUNCHER_RESPONSE_BYTES_MAX = 256 * 1024;
/** How long a launcher is asked how its worker ended, and how often: kubelet starts a container again after 10 s. */
export const LAST_EXIT_WAIT_MS = 20_000;
export const LAST_EXIT_POLL_MS = 200;
/** How often a launcher is asked that is not ready. */
export const LAUNCHER_POLL_MS = 2_000;
/** After so long a controller that has started knows which pods serve. Until then the last routes stay. */
export const PODS_SETTLE_MS = 15_000;
/** How long a pod has that is killed because a prediction runs too long there. */
export const KILL_GRACE_SECONDS = 1;
/** The pause before objects that could not be applied are applied again: the first, and the longest. */
export const APPLY_PAUSE_FIRST_MS = 1_000;
export const APPLY_PAUSE_MAX_MS = 60_000;
/** How often certificates are looked at: they are renewed three months before their end. */
export const CERTIFICATES_POLL_MS = 6 * 60 * 60_000;
/** How long a pod may take to ask for its project. */
export const PROJECT_REQUEST_MAX_MS = 10_000;
/** How long a worker whose connection has ended may take to end, before it is killed. */
export const ENDS_BY_ITSELF_MS = 500;
/** How often launchers of pods are asked that a job waits for. */
export const JOB_LAUNCHER_POLL_MS = 300;
/** A job without any worker ends if one of its pods cannot be prepared for so long: its project cannot be fetched, say. */
export const UNPREPARED_MAX_MS = 5 * 60_000;
/** A Job that no worker needs for so long is removed. */
export const JOB_IDLE_MS = 1_000;
/** A Job whose job needs fewer pods for so long gets fewer. */
export const JOB_SHRINKS_AFTER_MS = 30_000;
/** How long a Job of a former controller stays until its job asks for workers again. */
export const JOB_ADOPTED_MS = 60_000;
/** How long the start of a controller waits for the pods of jobs. */
export const JOBS_SETTLE_MS = 10_000;
