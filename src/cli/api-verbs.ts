/** The verbs about APIs, with their arguments and options. */
import type { Command } from "commander";
import type { requireAbout } from "./project/about-here.ts";
import { type CliContext, CliError, EXIT } from "./server/context.ts";

export type RunVerb = (verb: (context: CliContext) => Promise<number>) => Promise<void>;

export function addApiVerbs(program: Command, run: RunVerb, version: string): void {
  const apis = () => import("./apis.ts");
  addDeployVerbs(program, run);
  addReadingVerbs(program, run);
  program
    .command("describe <api>")
    .description("show everything about an API: replicas, versions, configuration")
    .action((api) => run(async (context) => (await import("./describe.ts")).describeApi(context, api)));
  program
    .command("explain <api> [job]")
    .description("say why an API is slow, a job is stuck or a rollout is not done, and what to do")
    .option("--at <time>", "say what differed at a time of the last two weeks, such as 14:05 or 30m (ago)")
    .action((api, job, options) =>
      run(async (context) => (await import("./dashboard/explain.ts")).explain(context, api, job, options)),
    );
  program
    .command("predict [api] [file]")
    .usage("[options] [api] <file>")
    .description("send a JSON file (- is stdin) to a real-time API (default: the only one of this directory)")
    .action((api, file) =>
      run(async (context) => {
        const { payloadFile } = await apis();
        const payload = payloadFile(api, file);
        const { app, names } = await requireHere(context, file === undefined ? [] : [api]);
        return app === undefined
          ? (await apis()).predict(context, names[0]!, payload)
          : (await import("./project/applications.ts")).predictSamples(context, app, names[0], payload);
      }),
    );
  addChangingVerbs(program, run);
  program
    .command("version")
    .description("print the versions of command line and server")
    .action(() => run(async (context) => (await import("./version.ts")).showVersion(context, version)));
}

const given = (...names: (string | undefined)[]) => names.filter((name) => name !== undefined);
const requireHere: typeof requireAbout = async (...args) =>
  (await import("./project/about-here.ts")).requireAbout(...args);

/** Verbs that show deployed APIs and applications: by default, those of the configuration in this directory. */
function addReadingVerbs(program: Command, run: RunVerb): void {
  const applications = () => import("./project/applications.ts");
  const watch = () => import("./terminal/watch.ts");
  program
    .command("get [api] [job]")
    .description(
      "show an API, a job, or everything that is deployed; with -a, an application's resources by [type] [name]",
    )
    .option("--all", "show everything that is deployed, even in the directory of an API")
    .action((api, job, { all }) =>
      run(async (context) => {
        const { getHere } = await import("./get.ts");
        return getHere(context, given(api, job), all === true);
      }),
    );
  program
    .command("status [type] [name]")
    .description("count the ready resources of an application by kind")
    .action((type, name) =>
      run(async (context) => {
        const { app, names } = await requireHere(context, given(type, name));
        if (app === undefined) throw new CliError("name the application with -a", EXIT.usage);
        const { showStatus } = await applications();
        return (await watch()).watched(context, (watching) => showStatus(watching, app, names));
      }),
    );
  program
    .command("logs [api] [job]")
    .description("print the log of an API or a job; with -a, of an application's resource by [type] name")
    .option("-f, --follow", "follow until the job ends, the API is deleted, or you interrupt")
    .action((api, job, options) =>
      run(async (context) => {
        const { app, names } = await requireHere(context, given(api, job));
        return app === undefined
          ? (await import("./project/logs.ts")).logs(context, names[0]!, names[1], options)
          : (await applications()).resourceLogs(context, app, names, options);
      }),
    );
}

const CANCEL_HELP =
  "cancel a deployment in progress: stop replicas that are starting and resources that are being computed";

/** Verbs that change deployed APIs and applications. */
function addChangingVerbs(program: Command, run: RunVerb): void {
  const apis = () => import("./apis.ts");
  const applications = () => import("./project/applications.ts");
  program
    .command("refresh [api]")
    .description(
      "start new replicas of a real-time API; the old ones drain once the new ones are ready. With -a, read an application's data again",
    )
    .option("-f, --force", CANCEL_HELP)
    .action((api, options) =>
      run(async (context) => {
        const isNamed = api !== undefined && context.app === undefined;
        const { app, names } = isNamed ? { names: [api] } : await requireHere(context, []);
        return app === undefined
          ? (await apis()).refresh(context, names[0], options)
          : (await applications()).refreshApplication(context, app, options);
      }),
    );
  program
    .command("rollback <api> [id]")
    .description("deploy an earlier version again: the previous one, or the one with this id")
    .action((api, id) => run(async (context) => (await apis()).rollback(context, api, id)));
  program
    .command("pause <api>")
    .description("begin no new batch of a batch API's jobs, also of those that are submitted later")
    .action((api) => run(async (context) => (await apis()).pauseOrContinue(context, api, "pause")));
  program
    .command("unpause <api>")
    .description("continue the jobs of a paused batch API")
    .action((api) => run(async (context) => (await apis()).pauseOrContinue(context, api, "unpause")));
  program
    .command("delete [api] [job]")
    .description("delete an API, or stop a job; with -a, delete an application")
    .option("-f, --force", "do not ask for confirmation, same as -y")
    .option("--records", "with the records of all its jobs, also of an API that was deleted before")
    .action((api, job, options) =>
      run(async (given) => {
        const context = { ...given, isYes: given.isYes || options.force === true };
        if (context.app !== undefined && api === undefined)
          return (await applications()).deleteApplication(context, context.app);
        if (api === undefined) throw new CliError("name the API, or an application with -a", EXIT.usage);
        if (job === undefined) return (await apis()).remove(context, api, options.records === true);
        if (options.records === true) throw new CliError("--records is for an API without a job", EXIT.usage);
        return (await apis()).stopJob(context, api, job);
      }),
    );
}

const ENVIRONMENT = "--environment <name>";
const ENVIRONMENT_HELP = "environment of a declarative application (default dev)";

function addDeployVerbs(program: Command, run: RunVerb): void {
  const deploys = () => import("./project/deploy.ts");
  program
    .command("check [file]")
    .description("validate a configuration and its project without changing anything")
    .option(ENVIRONMENT, ENVIRONMENT_HELP)
    .action((file = "quern.yaml", options) =>
      run(async (context) => (await deploys()).check(context, file, options)),
    );
  program
    .command("dev [file] [apis...]")
    .description("deploy now and whenever a file changes; print the logs; start a server if none runs")
    .action((file = "quern.yaml", names: string[] = []) =>
      run(async (context) => (await import("./project/dev.ts")).dev(context, file, names)),
    );
  program
    .command("deploy [file] [apis...]")
    .description("deploy the APIs of a configuration (default quern.yaml), or some of them")
    .option("--wait", "wait until the replicas are live or have failed")
    .option(ENVIRONMENT, ENVIRONMENT_HELP)
    .option("-f, --force", CANCEL_HELP)
    .action((file = "quern.yaml", names: string[] = [], options) =>
      run(async (context) => (await deploys()).deploy(context, file, names, options)),
    );
  program
    .command("patch [file] [apis...]")
    .description(
      "change the configuration of deployed APIs, or of some of them; they keep their deployed files",
    )
    .option("--wait", "wait until the replicas are live or have failed")
    .option("-f, --force", CANCEL_HELP)
    .action((file = "quern.yaml", names: string[] = [], options) =>
      run(async (context) => (await deploys()).patch(context, file, names, options)),
    );
}
