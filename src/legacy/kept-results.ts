/**
 * What an application computed, as the state of the server has it (`--state`). A result is kept there once it has
 * succeeded, and a model's project before its API is deployed. What is missing on the disk is fetched before anything is
 * computed; what the state does not have is computed again.
 */
import type { Log } from "../base/log.ts";
import type { Trees } from "../state/trees.ts";
import type { Artifacts } from "./artifacts.ts";
import type { ResourceGraph } from "./check/resource-graph.ts";
import { nodesOf } from "./check/resource-graph.ts";

export class KeptResults {
  private readonly trees: { projects: Trees; results: Trees };
  private readonly servingProjectId: (modelId: string) => string;

  private readonly log: Log;

  constructor(
    trees: { projects: Trees; results: Trees },
    servingProjectId: (modelId: string) => string,
    log: Log,
  ) {
    this.log = log;
    this.trees = trees;
    this.servingProjectId = servingProjectId;
  }

  /** Fetches what the disk does not have. */
  async fetch(graph: ResourceGraph): Promise<void> {
    const { projects, results } = this.trees;
    if (!results.areCopies) return;
    for (const id of idsOf(graph)) await results.fetch(`${graph.app}/${id}`, true);
    for (const { id } of graph.models) await projects.fetch(this.servingProjectId(id), true);
  }

  /** Keeps all that has succeeded. */
  async keep(graph: ResourceGraph, artifacts: Artifacts): Promise<void> {
    const { projects, results } = this.trees;
    if (!results.areCopies) return;
    const ids = idsOf(graph);
    const missing = new Set(await artifacts.missing(ids));
    const models = new Set(graph.models.map(({ id }) => id));
    for (const id of ids) {
      if (missing.has(id)) continue;
      // First, so that a model that is kept has its project.
      if (models.has(id)) await projects.keep(this.servingProjectId(id), undefined, true);
      await results.keep(`${graph.app}/${id}`, undefined, true);
    }
  }

  /** Removes an application's results, except these. If the store does not respond, they stay until the next time. */
  prune(app: string, ids: ReadonlySet<string>): Promise<void> {
    const { results } = this.trees;
    return this.unlessAway(results.removeAll(`${app}/`, (name) => ids.has(name.slice(app.length + 1))));
  }

  /** Removes the results of applications that are not deployed any more. */
  forgetOthers(isDeployed: (app: string) => boolean): Promise<void> {
    return this.trees.results.removeAll("", (name) => isDeployed(name.split("/", 1)[0]!));
  }

  /** The results come first: a model that is kept must have its project. The next start removes what is left of them. */
  remove(app: string, ids: readonly string[]): Promise<void> {
    const remove = async () => {
      await this.trees.results.removeAll(`${app}/`);
      for (const id of ids) await this.trees.projects.remove(this.servingProjectId(id));
    };
    return this.unlessAway(remove());
  }

  private unlessAway(removal: Promise<void>): Promise<void> {
    return removal.catch((error: Error) =>
      this.log.warn(
        { event: "state_not_removed", err: error },
        "results of an application stay in the state",
      ),
    );
  }
}

/** Of all that is computed. */
function idsOf(graph: ResourceGraph): string[] {
  const computed = nodesOf(graph).flatMap(({ kind, id }) => (kind === "api" ? [] : [id]));
  return [...new Set([graph.environment.id, ...computed])];
}
