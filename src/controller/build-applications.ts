/** Builds the declarative applications, and the part of a deployment that recognises them. */
import type { Apis } from "../apis/apis.ts";
import type { DeployApplication } from "../apis/deploy/deploy.ts";
import { ManagedApis } from "../apis/managed-apis.ts";
import type { ProjectSweep } from "../apis/projects/project-sweep.ts";
import { apiLogDirectory } from "../contracts/data-layout.ts";
import { Applications } from "../legacy/applications.ts";
import { readApplication } from "../legacy/check/read-application.ts";
import { Workplace } from "../legacy/workplace.ts";
import type { StoresAndQueues } from "./build-jobs.ts";
import { applicationTrees } from "./build-state.ts";
import type { ControllerOptions, Infrastructure } from "./infrastructure.ts";

export function buildApplications(
  { log, options, workerDeps, account, state, leaving }: Infrastructure,
  apis: Apis,
  storesAndQueues: StoresAndQueues,
): Applications {
  const { dataDir } = options;
  const { db, engine, environments } = workerDeps;
  const managed = new ManagedApis(db, apis);
  const work = new Workplace({
    ...{ db, log, dataDir, engine, account, store: storesAndQueues.store },
    projects: workerDeps.projects,
    results: applicationTrees({ state, dataDir, log, leaving: leaving.signal }),
    prepare: (project, logFile) => environments.prepare(project, logFile),
    serving: {
      place: (placement) => managed.place(placement),
      find: (name) => managed.find(name),
      remove: (name) => managed.remove(name),
      names: () => managed.names(),
      assertFree: (name, endpoint) => managed.assertFree(name, endpoint),
      logDirectory: (name) => apiLogDirectory(dataDir, name),
    },
  });
  return new Applications(work);
}

const NO_PODS =
  "declarative applications need a server with --engine local: their models are files of its own disk, which pods do not have; deploy the application there, or its predictor as a RealtimeAPI";

/** Deploys an archive if it holds an application. */
export function applicationDeploy(
  applications: Applications,
  projects: Pick<ProjectSweep, "keep">,
  engine: ControllerOptions["engine"],
): DeployApplication {
  return async (project, { sender, configFile, environment, force, dryRun }) => {
    const { project_id, configText, directory } = project;
    const read = await readApplication({ text: configText, file: configFile, directory }, sender);
    if (read.kind === "none") return undefined;
    if (read.kind === "faulty") return { errors: read.errors };
    if (engine === "kubernetes") return { errors: [{ pointer: configFile, detail: NO_PODS }] };
    // Before the row that names it.
    if (!dryRun) await projects.keep(project);
    const application = { project_id, config_file: configFile, config_text: configText };
    const message = await applications.deploy(read.name, { application, environment, force, dryRun });
    return { name: read.name, message };
  };
}
