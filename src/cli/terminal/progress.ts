/**
 * A job's progress. On a terminal it is a moving bar with the rate and the remaining time; elsewhere it is a line for
 * each ten percent.
 */
import type { CliContext } from "../server/context.ts";
import { age } from "./table.ts";

const WIDTH = 30;

export class ProgressBar {
  private readonly context: Pick<CliContext, "err" | "errLine" | "isInteractive">;
  private firstMs: number | undefined;
  private firstDone = 0;
  private shown = "";

  constructor(context: Pick<CliContext, "err" | "errLine" | "isInteractive">) {
    this.context = context;
  }

  update(status: string, done: number, total: number | undefined, failed: number): void {
    const nowMs = performance.now();
    if (this.firstMs === undefined && total !== undefined) {
      this.firstMs = nowMs;
      this.firstDone = done;
    }
    const share = total === undefined || total === 0 ? 0 : done / total;
    if (this.context.isInteractive) {
      this.context.errLine(
        `${status} ${bar(share)} ${done}/${total ?? "?"}${failed > 0 ? ` (${failed} failed)` : ""}${this.pace(nowMs, done, total)}`,
      );
      return;
    }
    const line = `${status} ${Math.floor(share * 10) * 10}%`;
    if (line !== this.shown) this.context.err(`${line} (${done}/${total ?? "?"} batches)\n`);
    this.shown = line;
  }

  end(): void {
    if (this.context.isInteractive) this.context.err("\n");
  }

  private pace(nowMs: number, done: number, total: number | undefined): string {
    const seconds = (nowMs - (this.firstMs ?? nowMs)) / 1000;
    const rate = seconds > 0.3 ? (done - this.firstDone) / seconds : 0;
    if (rate <= 0 || total === undefined) return "";
    return ` ${rate >= 10 ? Math.round(rate) : rate.toFixed(1)}/s, ${age(((total - done) / rate) * 1000)} left`;
  }
}

function bar(share: number): string {
  const full = Math.round(share * WIDTH);
  return `[${"=".repeat(full)}${" ".repeat(WIDTH - full)}] ${Math.floor(share * 100)}%`;
}
