/** The verbs about the command line, keys and the machine. */
import type { Command } from "commander";
import type { RunVerb } from "./api-verbs.ts";

export function addOwnVerbs(program: Command, run: RunVerb, version: string): void {
  addKeyVerbs(program, run);
  addEnvironmentVerbs(program, run);
  program
    .command("init [directory]")
    .description("create a project from a template")
    .option("--template <name>", "iris, scikit-learn or files", "iris")
    .action((directory = ".", options) =>
      run(async (context) => (await import("./project/init.ts")).initProject(context, directory, options)),
    );
  addExportVerbs(program, run, version);
  program
    .command("audit")
    .description("print changes with who made them, and refused requests")
    .option("-f, --follow", "continue until you interrupt")
    .option("--key <id>", "only by this key, or this subject of a token")
    .option("--since <duration>", "not older than this, such as 1h")
    .action((options) => run(async (context) => (await import("./audit.ts")).showAudit(context, options)));
  addSeriesVerb(program, run);
  addChangesVerb(program, run);
  addDiffVerb(program, run);
  addBackupVerbs(program, run);
  program
    .command("ui")
    .description("open the dashboard in a browser, signed in")
    .option("--print", "print its address only; whoever opens it within a minute is signed in")
    .action((options) =>
      run(async (context) => (await import("./server/open-dashboard.ts")).openDashboard(context, options)),
    );
  program
    .command("doctor")
    .description("check the environment: Node, Python, disk, limits, the server")
    .option(
      "--namespace <name>",
      "check instead the pods of Quern in this namespace of the kubeconfig's cluster",
    )
    .option(
      "--wait [duration]",
      "with --namespace: wait until all pods are ready, at most so long (default 5m)",
    )
    .action(({ namespace, wait }) =>
      run(async (context) => {
        if (namespace === undefined) return (await import("./doctor.ts")).doctor(context);
        return (await import("./kubernetes/doctor.ts")).clusterDoctor(context, { namespace, wait });
      }),
    );
  program
    .command("completion <shell>")
    .description("print the completion for bash, zsh or fish")
    .action((shell) =>
      run(async ({ out }) => {
        await out((await import("./completion.ts")).completionScript(program, shell));
        return 0;
      }),
    );
}

function addExportVerbs(program: Command, run: RunVerb, version: string): void {
  const verb = program
    .command("export")
    .description("export a deployed API, or the server for Kubernetes")
    .exitOverride();
  verb
    .command("api <api> <idOrDirectory> [directory]")
    .usage("[options] <api> [id] <directory>")
    .description(
      "write the configuration and files of an API, or of its version with this id, to a new directory",
    )
    .action((api, idOrDirectory, directory) =>
      run(async (context) =>
        (await import("./project/export.ts")).exportApi(context, api, idOrDirectory, directory),
      ),
    );
  verb
    .command("kubernetes")
    .description("print YAML for `kubectl apply -f -` that runs the server, with --replicas 2 also a standby")
    .option("--namespace <name>", "an existing namespace", "default")
    .option("--image <name>", "image made from deploy/Dockerfile", `quern:${version}`)
    .option(
      "--storage <size>",
      "size of the data directory: of its volume or, with --state, on the node",
      "10Gi",
    )
    .option("--cpus <number>", "CPUs that replicas and workers may reserve together", "2")
    .option("--memory <size>", "memory that replicas and workers may reserve together", "4Gi")
    .option("--database-secret <name>", "Secret whose key `url` is the URL of a PostgreSQL database")
    .option("--state <url>", "keep the files in this prefix of an object store, without a volume")
    .option("--state-secret <name>", "Secret whose keys are variables with the credentials of that store")
    .option(
      "--replicas <number>",
      "number of servers: one is active, others wait; 2 or more need --database-secret and --state",
      "1",
    )
    .option("--engine <engine>", "kubernetes: real-time APIs run in pods of their own", "local")
    .option(
      "--worker-image <name>",
      "image of these pods, made from deploy/worker.Dockerfile",
      `quern-worker:${version}`,
    )
    .action((options) =>
      run(async (context) => (await import("./kubernetes/export.ts")).exportKubernetes(context, options)),
    );
}

function addSeriesVerb(program: Command, run: RunVerb): void {
  program
    .command("series [api] [job]")
    .description("plot requests, times, replicas and batches of an API, a job, or the server")
    .option("--metric <names>", "only these, separated by commas (default: those that have values)")
    .option("--since <duration>", "not older than this, such as 24h", "1h")
    .option("--step <seconds>", "seconds of each value, such as 60 or 3600 (default: what fits the range)")
    .action((api, job, options) =>
      run(async (context) => (await import("./dashboard/series.ts")).showSeries(context, api, job, options)),
    );
}

function addChangesVerb(program: Command, run: RunVerb): void {
  program
    .command("changes <api>")
    .description(
      "show which versions of an API were deployed or rolled back, by whom, and which replicas ended",
    )
    .action((api) =>
      run(async (context) => (await import("./dashboard/changes.ts")).showChanges(context, api)),
    );
}

function addDiffVerb(program: Command, run: RunVerb): void {
  program
    .command("diff <api> [from] [to]")
    .description(
      "show which files and lines differ between two versions (default: the last one, and the one before)",
    )
    .action((api, from, to) =>
      run(async (context) => (await import("./dashboard/diff.ts")).showDiff(context, api, from, to)),
    );
}

function addBackupVerbs(program: Command, run: RunVerb): void {
  program
    .command("backup <to>")
    .description(
      "save the state of a running server to a new file, a bucket (s3://, gs://, az://), or - for standard output",
    )
    .action((to) => run(async (context) => (await import("./backup.ts")).backup(context, to)));
  program
    .command("restore <from>")
    .description(
      "make a data directory from a backup: a file, an address in a bucket, or - for standard input",
    )
    .requiredOption("--data-dir <dir>", "a new or empty directory")
    .action((from, options) =>
      run(async (context) => (await import("./backup.ts")).restore(context, from, options)),
    );
}

function addKeyVerbs(program: Command, run: RunVerb): void {
  const keys = () => import("./keys.ts");
  const verb = program.command("keys").description("manage API keys").exitOverride();
  verb
    .command("create")
    .description("create a key and print it; it is shown only once")
    .requiredOption("--scope <scope>", "predict, submit, view or admin")
    .option("--api <name>", "for this API only")
    .option("--name <text>", "who or what gets the key, for lists and the audit")
    .option("--data-dir <dir>", "create the key in this data directory, without a running server")
    .option("--if-none", "create the key only if none exists; needs --data-dir")
    .option("--rate <rate>", "limit of requests, such as 100/s, 5000/m or 20000/h")
    .option("--expires-in <duration>", "how long the key is valid, such as 720h")
    .action((options) => run(async (context) => (await keys()).createKey(context, options)));
  verb
    .command("list")
    .description("list keys without their secrets")
    .action(() => run(async (context) => (await keys()).listKeys(context)));
  verb
    .command("rotate <id>")
    .description(
      "create and print a key with the same permission; the old key expires after the grace period. With admin: replace the admin token",
    )
    .option("--grace <duration>", "how long the old key stays valid (default 24h; of the admin token 0s)")
    .option(
      "--expires-in <duration>",
      "how long the new key is valid, such as 720h, or never (needed if the old key has an end)",
    )
    .action((id, options) => run(async (context) => (await keys()).rotateKey(context, id, options)));
  verb
    .command("revoke <id>")
    .description("revoke a key")
    .action((id) => run(async (context) => (await keys()).revokeKey(context, id)));
}

function addEnvironmentVerbs(program: Command, run: RunVerb): void {
  const environments = () => import("./environments.ts");
  const verb = program.command("env").description("manage servers by name, for -e").exitOverride();
  verb
    .command("add <name>")
    .description("add a server, or replace one")
    .requiredOption("--host <url>", "URL of the server")
    .option("--key <key>", "the key to send; - reads it from standard input")
    .action((name, options) =>
      run(async (context) => (await environments()).addEnvironment(context, name, options)),
    );
  verb
    .command("list")
    .description("list servers")
    .action(() => run(async (context) => (await environments()).listEnvironments(context)));
  verb
    .command("use <name>")
    .alias("default")
    .description("use this server for commands without -e")
    .action((name) => run(async (context) => (await environments()).useEnvironment(context, name)));
  verb
    .command("remove <name>")
    .alias("delete")
    .description("remove a server")
    .action((name) => run(async (context) => (await environments()).removeEnvironment(context, name)));
}
