/** How close the worker of a pod is to `predictor.max_requests` and `max_age`. */

export type Wear = "fresh" | "wearing" | "worn";

export class WorkerWear {
  /**
   * `wearing`: it will soon have reached `max_requests`, so that its successor starts. `worn`: it has reached that or
   * `max_age`, and serves until enough others do.
   */
  state: Wear = "fresh";
  private readonly maxAgeMs: number | undefined;
  private readonly changed: () => void;
  private timer: NodeJS.Timeout | undefined;

  constructor(maxAgeMs: number | undefined, changed: () => void) {
    this.maxAgeMs = maxAgeMs;
    this.changed = changed;
  }

  /** Another worker, which is so old. */
  begin(ageMs: number): void {
    this.end();
    if (this.maxAgeMs === undefined) return;
    this.timer = setTimeout(() => this.become("worn"), Math.max(0, this.maxAgeMs - ageMs)).unref();
  }

  /** The worker asks for a successor. It may do so at will. */
  asks(requestsLeft: number): void {
    this.become(requestsLeft === 0 ? "worn" : "wearing");
  }

  /** The worker is gone. */
  end(): void {
    this.state = "fresh";
    clearTimeout(this.timer);
  }

  private become(state: "wearing" | "worn"): void {
    if (this.state === "worn" || this.state === state) return;
    this.state = state;
    this.changed();
  }
}
