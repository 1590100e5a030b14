/** `GET /-/series`: what happened per minute or hour. */
import { Hono } from "hono";
import { wallMs } from "../../base/clock.ts";
import { readSeries, type SeriesDeps } from "../../series/read-series.ts";
import type { ReadsInTurn } from "../requests/reads-in-turn.ts";

export interface SeriesRoutesDeps {
  series: SeriesDeps;
  reads: ReadsInTurn;
}

export function seriesRoutes({ series, reads }: SeriesRoutesDeps): Hono {
  const app = new Hono();
  app.get("/-/series", (c) => {
    const { api, job, from, to, step } = c.req.query();
    const metrics = c.req.queries("metric") ?? [];
    const query = { api, job, from, to, step, metrics };
    return reads.take(c, async () => c.json(await readSeries(series, query, wallMs() / 1000)));
  });
  return app;
}
