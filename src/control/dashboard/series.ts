/** `GET /-/series`: what happened per minute or hour. */
import { Hono } from "hono";
import { wallMs } from "../../base/clock.ts";
import { readSeries, type SeriesDeps } from "../../series/read-series.ts";

export interface SeriesRoutesDeps {
  series: SeriesDeps;
}

export function seriesRoutes({ series }: SeriesRoutesDeps): Hono {
  const app = new Hono();
  app.get("/-/series", async (c) => {
    const { api, job, from, to, step } = c.req.query();
    const metrics = c.req.queries("metric") ?? [];
    return c.json(await readSeries(series, { api, job, from, to, step, metrics }, wallMs() / 1000));
  });
  return app;
}
