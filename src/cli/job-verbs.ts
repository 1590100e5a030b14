/** The verbs about jobs, with their arguments and options. */
import type { Command } from "commander";
import type { RunVerb } from "./api-verbs.ts";
import type { StopFilter } from "./jobs/stop-jobs.ts";
import { type CliContext, CliError, EXIT } from "./server/context.ts";

export function addJobVerbs(program: Command, run: RunVerb): void {
  const job = program.command("job").description("submit, watch and stop jobs").exitOverride();
  addSubmit(job, run);
  addReading(job, run);
  addRounds(job, run);
  job
    .command("wait <api> <job>")
    .description("wait until a job ends; the exit code tells how")
    .option("--timeout <seconds>", "stop waiting after this long (exit code 124); the job continues")
    .action((api, id, options) =>
      run(async (context) => (await import("./jobs/wait-for-job.ts")).waitForJob(context, api, id, options)),
    );
  addPauses(job, run);
  job
    .command("stop <api> [job]")
    .description("stop a job, or those that match; it shows their number, and asks")
    .option("--all", "all that have not ended")
    .option("--status <status>", "only those that are enqueuing or running")
    .option("--created-before <time>", "only those that were submitted before, such as 2026-11-24T08:00:00Z")
    .action((api, id, options) => run((context) => stop(context, api, id, options)));
}

async function stop(
  context: CliContext,
  api: string,
  id: string | undefined,
  filter: StopFilter,
): Promise<number> {
  const isFiltered = Object.keys(filter).length > 0;
  if (isFiltered === (id !== undefined))
    throw new CliError("name one job, or give --all, --status or --created-before", EXIT.usage);
  if (id !== undefined) return (await import("./apis.ts")).stopJob(context, api, id);
  return (await import("./jobs/stop-jobs.ts")).stopJobs(context, api, filter);
}

/** Verbs about dead letter queues. */
export function addQueueVerbs(program: Command, run: RunVerb): void {
  const queues = () => import("./queues.ts");
  const queue = program.command("queue").description("dead letter queues and their messages").exitOverride();
  queue
    .command("get [queue]")
    .description("show the dead letter queues, or one")
    .option("--limit <count>", "at most this many queues", "50")
    .option("--cursor <cursor>", "continue after this cursor")
    .action((name, options) => run(async (context) => (await queues()).getQueues(context, name, options)));
  queue
    .command("messages <queue>")
    .description("show the messages of a queue, oldest first")
    .option("--search <text>", "only those with this text in their items or error")
    .option("--limit <count>", "at most this many", "20")
    .option("--cursor <cursor>", "continue after this cursor")
    .action((name, options) =>
      run(async (context) => (await queues()).queueMessages(context, name, options)),
    );
  queue
    .command("redrive <queue>")
    .description("run the batches of a queue's messages again; it shows their number, and asks")
    .option("--search <text>", "only those with this text in their items or error")
    .action((name, options) =>
      run(async (context) => (await queues()).changeMessages(context, name, "redrive", options)),
    );
  queue
    .command("remove <queue>")
    .description("remove messages of a queue permanently; it shows their number, and asks")
    .option("--search <text>", "only those with this text in their items or error")
    .action((name, options) =>
      run(async (context) => (await queues()).changeMessages(context, name, "remove", options)),
    );
  queue
    .command("purge <queue>")
    .description("remove all messages of a queue; needs -y")
    .action((name) => run(async (context) => (await queues()).purgeQueue(context, name)));
}

function addPauses(job: Command, run: RunVerb): void {
  const pauses = () => import("./jobs/pause-jobs.ts");
  job
    .command("pause <api> <job>")
    .description("begin no new batch of a job; those in hand end. It stays paused over restarts")
    .action((api, id) => run(async (context) => (await pauses()).pauseJob(context, api, id)));
  job
    .command("unpause [api] [job]")
    .description("continue a paused job, or all of them")
    .option("--all", "all that are paused, but for those whose API is")
    .action((api, id, { all }) =>
      run(async (context) => (await pauses()).unpauseJobs(context, api, id, all)),
    );
}

function addRounds(job: Command, run: RunVerb): void {
  const rounds = () => import("./jobs/submit-job.ts");
  job
    .command("redrive <api> <job>")
    .description("run the failed batches of a job again")
    .option("--error <text>", "only those with this text in their error")
    .option("--like <batch>", "only those whose error differs from that of this batch in numbers only")
    .option("--wait", "wait until it has ended")
    .action((api, id, options) =>
      run(async (context) =>
        (await rounds()).newRound(context, api, { jobId: id, verb: "redrive", ...options }),
      ),
    );
  job
    .command("resume <api> <job>")
    .description("resume a job that ended before all its batches were settled")
    .option("--wait", "wait until it has ended")
    .action((api, id, options) =>
      run(async (context) =>
        (await rounds()).newRound(context, api, { jobId: id, verb: "resume", ...options }),
      ),
    );
}

function addSubmit(job: Command, run: RunVerb): void {
  job
    .command("submit <api> <file>")
    .description("submit a job from a JSON file (- is stdin); prints its id")
    .option("--wait", "wait until it has ended")
    .option("--output-path <path>", "keep the predictions below this path (quern: is in the server)")
    .option("--output-compression <how>", "with --output-path: none, or zstd to compress the parts")
    .option("--dry-run", "check it and list the files that it selects; submit nothing")
    .option(
      "--idempotency-key <key>",
      "return the existing job if it was submitted with the same key and file",
    )
    .action((api, file, options) =>
      run(async (context) => (await import("./jobs/submit-job.ts")).submitJob(context, api, file, options)),
    );
}

/** What happened in a job. */
function addParts(job: Command, run: RunVerb): void {
  const watching = () => import("./terminal/watch.ts");
  job
    .command("rounds <api> <job>")
    .description("show when each round of a job began, how and by whom, and what became of its batches")
    .action((api, id) =>
      run(async (context) => {
        const { jobRounds } = await import("./jobs/job-rounds.ts");
        return (await watching()).watched(context, (again) => jobRounds(again, api, id));
      }),
    );
  job
    .command("workers <api> <job>")
    .description("show when each worker of a job started, was ready and ended, and why")
    .action((api, id) =>
      run(async (context) => {
        const { jobWorkers } = await import("./jobs/job-workers.ts");
        return (await watching()).watched(context, (again) => jobWorkers(again, api, id));
      }),
    );
}

function addReading(job: Command, run: RunVerb): void {
  const jobs = () => import("./jobs/show-jobs.ts");
  const watching = () => import("./terminal/watch.ts");
  job
    .command("get <api> <job>")
    .description("show a job")
    .action((api, id) =>
      run(async (context) => {
        const { getJob } = await jobs();
        return (await watching()).watched(context, (again) => getJob(again, api, id));
      }),
    );
  addParts(job, run);
  job
    .command("list [api]")
    .description("show the newest jobs of an API, or of all")
    .option("--limit <count>", "at most this many", "10")
    .option("--status <status>", "only those in this status, such as running; may be repeated", also)
    .option("--search <text>", "only those whose id begins with this, or whose API's name has it")
    .option("--created-after <time>", "only those that were submitted then or later")
    .option("--created-before <time>", "only those that were submitted before")
    .option("--cursor <cursor>", "continue after this cursor")
    .action((api, options) =>
      run(async (context) => {
        const { listJobs } = await jobs();
        return (await watching()).watched(context, (again) => listJobs(again, api, options));
      }),
    );
  job
    .command("failures <api> <job>")
    .description("show the batches that failed, with their errors and items")
    .option("--limit <count>", "at most this many", "20")
    .option("--cursor <cursor>", "continue after this cursor")
    .option("--by-error", "count them by error")
    .option("--like <batch>", "only those whose error differs from that of this batch in numbers only")
    .option("--export <file>", "write all of them, as JSON lines (- is stdout)")
    .action((api, id, options) =>
      run(async (context) => (await import("./jobs/failures.ts")).jobFailures(context, api, id, options)),
    );
  job
    .command("results <api> <job>")
    .description("print the predictions of a job with an output, as JSON lines in the order of the input")
    .option("-f, --follow", "follow until the job ends")
    .option("--from <batch>", "begin with this batch")
    .option("--to <batch>", "end before this batch")
    .option("--export <file>", "write them to a file (- is stdout)")
    .action((api, id, options) =>
      run(async (context) => (await import("./jobs/results.ts")).jobResults(context, api, id, options)),
    );
  job
    .command("verify <api> <job>")
    .description("read the output of a job again, and compare it with its manifest")
    .action((api, id) =>
      run(async (context) => (await import("./jobs/verify.ts")).verifyOutput(context, api, id)),
    );
  job
    .command("logs <api> <job>")
    .description("print the log of a job")
    .option("-f, --follow", "follow until the job ends")
    .action((api, id, options) =>
      run(async (context) => (await import("./project/logs.ts")).logs(context, api, id, options)),
    );
}

/** Collects the values of an option that may be repeated. */
function also(value: string, before: string[] = []): string[] {
  return [...before, value];
}
