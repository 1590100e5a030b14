/** Which code has run, as V8 counts it: each block of the scripts that a target covers, since the last check. */
import { type Profiler, Session } from "node:inspector";

export class Coverage {
  private readonly session = new Session();
  private readonly covers: RegExp;
  private readonly seen = new Set<string>();

  constructor(covers: RegExp) {
    this.covers = covers;
    this.session.connect();
    this.session.post("Profiler.enable");
    this.session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: true });
  }

  /** Whether code ran for the first time. A check takes milliseconds, so it is made after many inputs. */
  look(keep: boolean): boolean {
    let isFresh = false;
    for (const block of this.blocks()) {
      if (this.seen.has(block)) continue;
      isFresh = true;
      if (keep) this.seen.add(block);
    }
    return isFresh;
  }

  private *blocks(): Generator<string> {
    let scripts: Profiler.ScriptCoverage[] = [];
    this.session.post("Profiler.takePreciseCoverage", (_error, answer) => {
      scripts = answer.result;
    });
    for (const { url, functions } of scripts) {
      if (!this.covers.test(url)) continue;
      // A rough count, so that one run of a loop differs from many.
      for (const { ranges } of functions)
        for (const { startOffset, endOffset, count } of ranges)
          if (count > 0)
            yield `${url} ${startOffset} ${endOffset} ${Math.min(3, Math.ceil(Math.log2(count) / 3))}`;
    }
  }
}
