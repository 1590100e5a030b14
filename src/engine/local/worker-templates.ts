/**
 * Which versions have a template (docs/decisions/0032-worker-templates.md): those that started a worker a moment ago,
 * and start another one.
 */
import { inBackground } from "../../base/boundary.ts";
import { TEMPLATE_KEEP_MS, TEMPLATES_MAX } from "../../contracts/limits/processes.ts";
import type { StoppedWorkers } from "./stopped-workers.ts";
import type { Command, Launch, StartedProcess } from "./worker-process.ts";
import { type TemplateOptions, WorkerTemplate } from "./worker-template.ts";

/** A version that started a worker lately. */
interface Known {
  startedMs: number;
  template: WorkerTemplate | undefined;
  /** Later if its template has ended by itself: it may do so again. */
  mayBeginFromMs: number;
}

export class WorkerTemplates {
  private readonly options: TemplateOptions;
  private readonly stopped: StoppedWorkers;
  /** By command, the one that started a worker last at the end. */
  private readonly known = new Map<string, Known>();
  private timer: NodeJS.Timeout | undefined;

  /** `stopped`: one that somebody has stopped would tell no end of its workers, and is continued. */
  constructor(options: TemplateOptions, stopped: StoppedWorkers) {
    this.options = options;
    this.stopped = stopped;
  }

  /** Undefined if there is no template that could start it: the caller starts a process. */
  async start(command: Command, launch: Launch): Promise<StartedProcess | undefined> {
    // Only there is it tested.
    if (process.platform !== "linux") return undefined;
    this.endUnused();
    const key = JSON.stringify([command.python, command.env]);
    const nowMs = performance.now();
    const former = this.known.get(key);
    const known = former ?? { startedMs: nowMs, template: undefined, mayBeginFromMs: nowMs };
    known.startedMs = nowMs;
    this.known.delete(key);
    this.known.set(key, known);
    this.endUnusedLater();
    if (former !== undefined && known.template === undefined && nowMs >= known.mayBeginFromMs)
      this.begin(command, known);
    return known.template?.fork(launch);
  }

  /** Ends all of them, even one that somebody has stopped. Their workers go on. */
  killAll(): void {
    for (const { template } of this.known.values()) template?.kill();
  }

  private begin(command: Command, known: Known): void {
    const templates = [...this.known.values()].filter(({ template }) => template !== undefined);
    if (templates.length >= TEMPLATES_MAX) {
      const unused = templates.find(({ template }) => !template!.hasWorkers);
      if (unused === undefined) return;
      unused.template!.end();
      unused.template = undefined;
    }
    const template = this.templateOf(command);
    known.template = template;
    if (template === undefined) return;
    if (template.pid !== undefined) this.stopped.add(template.pid, "template");
    inBackground(this.forget(known, template));
  }

  /** Undefined if no more files can be opened. If that lasts, the start of the worker says it. */
  private templateOf(command: Command): WorkerTemplate | undefined {
    try {
      return new WorkerTemplate(command, this.options);
    } catch {
      return undefined;
    }
  }

  /** Once it has ended. If it was not told to, the next one may end in the same way. */
  private async forget(known: Known, template: WorkerTemplate): Promise<void> {
    await template.ended;
    if (template.pid !== undefined) this.stopped.remove(template.pid);
    if (known.template !== template) return;
    known.template = undefined;
    known.mayBeginFromMs = performance.now() + TEMPLATE_KEEP_MS;
  }

  private endUnused(): void {
    const nowMs = performance.now();
    for (const [key, { startedMs, template }] of this.known) {
      if (startedMs + TEMPLATE_KEEP_MS > nowMs || template?.hasWorkers === true) continue;
      template?.end();
      this.known.delete(key);
    }
  }

  private endUnusedLater(): void {
    clearTimeout(this.timer);
    if (this.known.size === 0) return;
    this.timer = setTimeout(() => {
      this.endUnused();
      this.endUnusedLater();
    }, TEMPLATE_KEEP_MS).unref();
  }
}
