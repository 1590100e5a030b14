/** `/-/healthz`: whether something needs a person, and the state of each API (docs/contract/operations.md#health). */
import { Hono } from "hono";
import { type ApiHealth, healthOf } from "../apis/api-health.ts";
import type { ApiState } from "../apis/api-state.ts";
import type { Apis } from "../apis/apis.ts";
import { type FieldError, ServiceError } from "../contracts/errors.ts";
import type { MemoryLimits } from "../contracts/http/answers.ts";
import { CoalescedAnswer } from "./answers/coalesced-answer.ts";
import { outOfReach } from "./answers/shortages.ts";
import { jsonText } from "./answers/stream-text.ts";
import { loopsOf, type MetricsRoutesDeps } from "./metrics.ts";

const DATABASE_FAULT_POLL_MS = 100;

export interface HealthRoutesDeps extends MetricsRoutesDeps {
  apis: Apis;
  memoryLimits: MemoryLimits;
  /** Why the database does not serve now; undefined if it does. */
  databaseFault: () => string | undefined;
  /** Why the data directory cannot be written; undefined if it can. */
  diskFault: () => Promise<string | undefined>;
  /** Problems of APIs that serve, but not as they were deployed. */
  warnings: () => string[];
}

export function healthRoutes(deps: HealthRoutesDeps): Hono {
  const app = new Hono();
  const health = new CoalescedAnswer(async () => JSON.stringify(await healthOfServer(deps)));
  app.get("/-/healthz", async () => jsonText(await health.ask()));
  return app;
}

/** Throws `unhealthy` if something needs a person. */
async function healthOfServer(deps: HealthRoutesDeps): Promise<Record<string, unknown>> {
  const apis = await apisUnlessFault(deps);
  const healths = apis.map((api) => [api, healthOf(api, deps.replicas.isCrashing(api.name))] as const);
  const faults = [...faultsOfApis(healths), ...faultsOfServer(await deps.diskFault(), deps.gateways())];
  if (faults.length > 0) throw unhealthy(faults);
  const warnings = healths.flatMap(([, { warning }]) => (warning === undefined ? [] : [warning]));
  return {
    status: "ok",
    memory_limits: deps.memoryLimits,
    compute: deps.compute(),
    warnings: [...deps.warnings(), ...warnings],
    event_loops: loopsOf(deps),
    apis: apis.map(({ name, kind, status }) => ({ name, kind, status })),
  };
}

/** Throws as soon as the database is known not to serve: a statement would wait longer. */
async function apisUnlessFault({ apis, databaseFault }: HealthRoutesDeps): Promise<ApiState[]> {
  let watch: NodeJS.Timeout | undefined;
  const fault = new Promise<never>((_, reject) => {
    const look = () => {
      const why = databaseFault();
      if (why !== undefined) reject(outOfReach(`the database cannot be reached: ${why}`));
    };
    look();
    watch = setInterval(look, DATABASE_FAULT_POLL_MS);
  });
  try {
    return await Promise.race([fault, apis.deployed.list()]);
  } finally {
    clearInterval(watch);
  }
}

function faultsOfApis(healths: readonly (readonly [ApiState, ApiHealth])[]): FieldError[] {
  return healths.flatMap(([{ name }, { fault }]) =>
    fault === undefined ? [] : [{ pointer: `/apis/${name}`, detail: fault }],
  );
}

/** What is wrong with the server itself, for a person. */
export function faultsOfServer(
  disk: string | undefined,
  { wanted, connected }: { wanted: number; connected: number },
): FieldError[] {
  const gateways = `${connected} of ${wanted} gateways are connected; the server's log says why, and starts others`;
  return [
    ...(disk === undefined
      ? []
      : [{ pointer: "/disk", detail: `${disk}; \`quern doctor\` shows what uses it` }]),
    ...(connected >= wanted ? [] : [{ pointer: "/gateways", detail: gateways }]),
  ];
}

function unhealthy(faults: readonly FieldError[]): ServiceError {
  const message = faults.length === 1 ? faults[0]!.detail : `${faults.length} things need a person`;
  return new ServiceError("unhealthy", message, { fields: faults });
}
