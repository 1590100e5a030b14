/** The declarative applications of this controller: deploys, refreshes, deletes, reads; a pipeline for each. */
import { contain, inBackground } from "../base/boundary.ts";
import { timestamp } from "../base/clock.ts";
import type { Service } from "../base/service.ts";
import type { ApplicationState, ResourceState } from "../contracts/config/applications.ts";
import { ServiceError } from "../contracts/errors.ts";
import { VALUES_SHOWN_BYTES_MAX } from "../contracts/limits/responses.ts";
import { hideInText } from "../contracts/secrets.ts";
import {
  type ApplicationRecord,
  allApplications,
  deleteApplication,
  findApplication,
  saveApplication,
} from "./application-rows.ts";
import { RESULT_SLICES } from "./artifacts.ts";
import { nodesOf, type ResourceGraph } from "./check/resource-graph.ts";
import type { Pipeline } from "./pipeline.ts";
import { statusesOf } from "./resource-status.ts";
import type { Workplace } from "./workplace.ts";

export interface ApplicationRequest {
  application: Pick<ApplicationRecord, "project_id" | "config_file" | "config_text">;
  /** Name of an environment of the application. */
  environment: string;
  /** Stop another deployment that is running. */
  force: boolean;
  /** Validate everything, change nothing. */
  dryRun: boolean;
}

export class Applications implements Service {
  private readonly work: Workplace;
  private readonly pipelines = new Map<string, Pipeline>();
  /** Runs one change after the other. */
  private turn: Promise<unknown> = Promise.resolve();

  constructor(work: Workplace) {
    this.work = work;
  }

  /** Resumes what the previous controller had begun. */
  async start(): Promise<void> {
    const records = await allApplications(this.work.db);
    const names = new Set(records.map(({ name }) => name));
    inBackground(this.work.kept.forgetOthers((app) => names.has(app) || this.pipelines.has(app)));
    for (const record of records)
      try {
        this.begin(record, await this.work.graphOf(record));
      } catch (error) {
        this.work.log.error(
          { event: "application_stuck", err: error, application: record.name },
          "the application cannot continue",
        );
      }
  }

  async stop(): Promise<void> {
    await Promise.all([...this.pipelines.values()].map((pipeline) => pipeline.leave()));
  }

  /** Deploys an application and resolves to the message for the user. Throws `invalid_request` and `wrong_state`. */
  deploy(name: string, request: ApplicationRequest): Promise<string> {
    return this.inTurn(async () => {
      const { application, environment, dryRun } = request;
      const before = await findApplication(this.work.db, name);
      const record = {
        ...{ name, ...application, environment },
        data_version: before?.data_version ?? timestamp(),
        deployed_time: timestamp(),
      };
      const graph = await this.work.graphOf(record);
      this.work.assertGpus(graph);
      await this.work.assertAddresses(graph);
      if (dryRun) return `${name} is valid`;
      const running = this.running(name);
      const isSame = before !== undefined && isSameGraph(await this.work.graphOf(before), graph);
      if (running !== undefined && isSame) return "Deployment is already running";
      await this.makeWay(name, request.force);
      const hasWork = await this.work.hasWork(graph);
      await this.replace(record, graph);
      const stopped = running === undefined ? "" : "Running deployment stopped, ";
      if (hasWork) return stopped === "" ? "Deployment started" : `${stopped}new deployment started`;
      if (stopped !== "") return `${stopped}new deployment is up-to-date`;
      return isSame ? "Deployment is up-to-date" : "Deployment updated";
    });
  }

  /** Reads the data again and recomputes everything. */
  refresh(name: string, force: boolean): Promise<string> {
    return this.inTurn(async () => {
      const record = await this.record(name);
      const wasRunning = this.running(name) !== undefined;
      await this.makeWay(name, force);
      const renewed = { ...record, data_version: timestamp(), deployed_time: timestamp() };
      const graph = await this.work.graphOf(renewed);
      await this.replace(renewed, graph);
      await this.work.prune(graph);
      return wasRunning
        ? "Running deployment stopped, cached deleted, new deployment started"
        : "Cache deleted, deployment started";
    });
  }

  delete(name: string): Promise<string> {
    return this.inTurn(async () => {
      await this.record(name);
      await this.pipelines.get(name)?.terminate();
      this.pipelines.delete(name);
      await deleteApplication(this.work.db, name);
      await this.work.remove(name);
      return "Deployment deleted";
    });
  }

  /** One after the other: each may have thousands of resources. */
  async *list(): AsyncGenerator<ApplicationState> {
    for (const record of await allApplications(this.work.db)) yield this.stateOf(record, false);
  }

  /** `withValues`: include the values of aggregates, of which long ones are left out. Throws `application_not_found`. */
  async get(name: string, withValues: boolean): Promise<ApplicationState> {
    return this.stateOf(await this.record(name), withValues);
  }

  /**
   * The log directory of a resource: of its data stage or training, or of an API's replicas. `isOver`: nothing more is
   * written to it.
   */
  async logOf(
    name: string,
    kind: string | undefined,
    resource: string,
  ): Promise<{ directory: string; isOver: () => boolean }> {
    const graph = await this.work.graphOf(await this.record(name));
    const node = nodesOf(graph).find(
      (each) => each.name === resource && (kind === undefined || each.kind === kind),
    );
    if (node === undefined)
      throw new ServiceError("resource_not_found", `${name} has no ${kind ?? "resource"} ${resource}`);
    const isOver = () => node.kind !== "api" && this.running(name) === undefined;
    return { directory: this.work.logDirectory(name, node), isOver };
  }

  private async stateOf(record: ApplicationRecord, withValues: boolean): Promise<ApplicationState> {
    const graph = this.pipelines.get(record.name)?.graph ?? (await this.work.graphOf(record));
    const { name, environment, data_version, deployed_time } = record;
    const nodes = nodesOf(graph);
    const states = await this.work.artifacts(name).states(nodes.map(({ id }) => id));
    const served = await this.work.served(graph);
    const { waiting } = this.running(name) ?? {};
    const work = { isWorking: this.running(name) !== undefined, waiting: waiting?.id };
    const statuses = statusesOf(graph, states, work, served);
    const values = withValues ? { bytesLeft: VALUES_SHOWN_BYTES_MAX } : undefined;
    const resources: ResourceState[] = [];
    // One after the other: each result is read in one step.
    for (const node of nodes) {
      if (RESULT_SLICES.isOver) await RESULT_SLICES.rest();
      const state = states.get(node.id);
      resources.push({
        ...{ kind: node.kind, name: node.name, resource_id: node.id, status: statuses.get(node.id)! },
        ...(state === undefined ? {} : { started_time: state.started_time }),
        ...(state?.ended_time === undefined ? {} : { ended_time: state.ended_time }),
        ...(state?.reason === undefined ? {} : { reason: hideInText(state.reason) }),
        ...(waiting?.id === node.id ? { reason: waiting.reason } : {}),
        ...(await this.work.resultOf(graph, node, served, values)),
        config: "resource" in node ? (node.resource as Record<string, unknown>) : {},
      });
    }
    return {
      name,
      environment,
      data_version,
      deployed_time,
      is_working: this.running(name) !== undefined,
      resources,
    };
  }

  private async record(name: string): Promise<ApplicationRecord> {
    const record = await findApplication(this.work.db, name);
    if (record !== undefined) return record;
    throw new ServiceError(
      "application_not_found",
      `${name} is not a deployed application; \`quern get\` shows what is deployed`,
    );
  }

  private running(name: string): Pipeline | undefined {
    const pipeline = this.pipelines.get(name);
    return pipeline?.isWorking === true ? pipeline : undefined;
  }

  private async makeWay(name: string, force: boolean): Promise<void> {
    const running = this.running(name);
    if (running === undefined) return;
    if (!force)
      throw new ServiceError("wrong_state", "Another deployment is running, use --force to override");
    await running.terminate();
  }

  private async replace(record: ApplicationRecord, graph: ResourceGraph): Promise<void> {
    await saveApplication(this.work.db, record);
    await this.work.retire(graph);
    await this.work.forgetFailures(graph);
    this.begin(record, graph);
  }

  private begin(record: ApplicationRecord, graph: ResourceGraph): void {
    const pipeline = this.work.pipelineOf(record, graph);
    this.pipelines.set(record.name, pipeline);
    contain(`application ${record.name}`, () => pipeline.run());
  }

  private inTurn<T>(change: () => Promise<T>): Promise<T> {
    const next = this.turn.then(change);
    this.turn = next.catch(() => {});
    return next;
  }
}

function isSameGraph(a: ResourceGraph, b: ResourceGraph): boolean {
  const content = (graph: ResourceGraph) =>
    JSON.stringify([
      graph.environment.id,
      nodesOf(graph).map(({ kind, name, id }) => [kind, name, id]),
      [...graph.models, ...graph.apis].map(({ resource }) => resource.compute),
    ]);
  return content(a) === content(b);
}
