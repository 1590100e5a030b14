/**
 * Preloaded into the gateway (`NODE_OPTIONS=--import`): measures the delay of its event loop from inside. SIGUSR2 writes
 * {p50_ms, p99_ms, max_ms} since the signal before it to $QUERN_BENCH_LOOP_DELAY. A sample is the time between two ticks
 * of a 1 ms timer less that millisecond.
 */
import { writeFileSync } from "node:fs";
import { monitorEventLoopDelay } from "node:perf_hooks";

if (process.argv.includes("__gateway")) {
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  process.on("SIGUSR2", () => {
    const ms = (nanoseconds) => Math.max(0, nanoseconds / 1e6 - 1);
    const figures = {
      p50_ms: ms(delay.percentile(50)),
      p99_ms: ms(delay.percentile(99)),
      max_ms: ms(delay.max),
    };
    writeFileSync(process.env.QUERN_BENCH_LOOP_DELAY, JSON.stringify(figures));
    delay.reset();
  });
}
