/** What the configuration of an API or of an application may say. */

/** A longer configuration is refused. It would be ten thousand times as long as usual. */
export const CONFIG_FILE_BYTES_MAX = 1024 * 1024;
/** APIs of one file. Each is compared with all others, and recording them is one step of a few milliseconds. */
export const APIS_MAX = 500;
/**
 * Compact JSON of a submission's `config` and of an API's `predictor.config`. Each worker and each status carries it. A
 * controller holds it for every running job: 1,000 jobs are 256 MiB. Larger values belong in a file that `config`
 * names.
 */
export const CONFIG_BYTES_MAX = 262_144;
/** ... and its depth: a worker merges the two configurations recursively, and nobody reads a hundred levels. */
export const CONFIG_DEPTH_MAX = 100;
/** Labels, tolerations or Secrets of an API's pods: a person wrote each. */
export const PLACEMENT_ENTRIES_MAX = 100;
/** `predictor.env`: Linux allows a process 2 MiB for its arguments and variables, and 128 KiB for one variable. */
export const ENV_VARIABLES_MAX = 1_000;
export const ENV_BYTES_MAX = 128 * 1024;
/**
 * Paths, addresses and keys in a configuration. Linux allows 4,096 bytes for a path, and an address must fit into the
 * head of a request.
 */
export const CONFIG_TEXT_LENGTH_MAX = 1_024;
/** Allowed origins of one API: each request is compared with each of them. */
export const ORIGINS_MAX = 100;
export const SPLIT_APIS_MAX = 100;
/** Names of an application's resources. They are part of file names, for which Linux allows 255 bytes. */
export const RESOURCE_NAME_LENGTH_MAX = 128;
/** More than any machine has, and small enough that sums stay exact. */
export const CPU_MILLIS_MAX = 100_000_000;
export const MEMORY_BYTES_MAX = 2 ** 50;
/** `predictor.startup_timeout` if it is absent: large models are downloaded and loaded in `__init__`. */
export const STARTUP_TIMEOUT = "30m";
/** An installation that takes longer is reported: few take that long, and those that hang end by themselves never. */
export const INSTALLATION_LONG_MS = 10 * 60_000;
/** The longest duration in a configuration: a day less than Node's longest timer (2^31 ms, 24.8 days). */
export const DURATION_MS_MAX = 23 * 86_400_000;
/** Replicas of one API: a third of the processes that Linux allows by default. */
export const REPLICAS_MAX = 10_000;
/** The default of `max_replicas`. */
export const MAX_REPLICAS_DEFAULT = 100;
/** `threads_per_process`: each thread needs a stack, and Linux allows a process about 32,000. */
export const THREADS_MAX = 10_000;
/** Aliases in one YAML text. The parser searches all anchors for each alias, so that 1,000 take 60 ms. */
export const YAML_ALIASES_MAX = 1_000;
/** Values that aliases may add to one YAML text, including those of nested aliases: 100,000 are checked in 0.2 s. */
export const YAML_COPIES_MAX = 100_000;
/**
 * Characters of all embeds of one application together, with their args filled in. A template of 1 MB is acceptable,
 * but a thousand embeds of it are not.
 */
export const EMBEDDED_TEXT_MAX = 4 * 1024 * 1024;
