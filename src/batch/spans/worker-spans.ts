/**
 * When each worker of a job started, was ready and ended, and why. Nobody waits for it: changes are collected for a
 * second and saved in the background, so that a short job costs one commit more at most. A kill -9 loses that second.
 */
import { inBackground } from "../../base/boundary.ts";
import { timestamp } from "../../base/clock.ts";
import type { Database } from "../../database/database.ts";
import {
  LAST_SPAN,
  type NumberedSpan,
  nextSpan,
  type SpanEnd,
  type SpanRow,
  saveSpans,
} from "./span-rows.ts";

const SAVED_AFTER_MS = 1_000;
const AGAIN_AFTER_MS = 5_000;
const REASON_MAX = 300;

interface Span extends SpanRow {
  /** Undefined until it is saved for the first time. */
  number: number | undefined;
}

export class WorkerSpans {
  private readonly db: Database;
  private readonly jobId: string;
  /** Those that run, by worker. */
  private readonly open = new Map<string, Span>();
  private readonly changed = new Set<Span>();
  /** The next number; undefined before the first save. */
  private next: number | undefined;
  private saving: Promise<void> = Promise.resolve();
  private timer: NodeJS.Timeout | undefined;

  constructor(db: Database, jobId: string) {
    this.db = db;
    this.jobId = jobId;
  }

  started(worker_id: string): void {
    const nothing = { ready_time: null, ended_time: null, how: null, reason: null };
    const span = {
      worker_id,
      started_time: timestamp(),
      ...nothing,
      batches: 0,
      spans: 1,
      number: undefined,
    };
    this.open.set(worker_id, span);
    this.note(span);
  }

  ready(worker_id: string): void {
    const span = this.open.get(worker_id);
    if (span === undefined) return;
    span.ready_time = timestamp();
    this.note(span);
  }

  /** Why it is about to end. The first reason counts. */
  because(worker_id: string, how: SpanEnd, reason?: string): void {
    const span = this.open.get(worker_id);
    if (span === undefined || span.how !== null) return;
    span.how = how;
    span.reason = reason?.slice(0, REASON_MAX) ?? null;
  }

  ended(worker_id: string, batches: number): void {
    const span = this.open.get(worker_id);
    if (span === undefined) return;
    this.open.delete(worker_id);
    span.ended_time = timestamp();
    span.how ??= "ended";
    span.batches = batches;
    this.note(span);
  }

  /** What the rows do not have yet. */
  unsaved(): (SpanRow & { number: number | undefined })[] {
    return [...this.changed].map((span) => ({ ...span }));
  }

  /** Saves what has changed. If that fails, it is tried again later. */
  save(): Promise<void> {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.saving = this.saving.then(() => this.saveChanged()).catch(() => this.saveIn(AGAIN_AFTER_MS));
    return this.saving;
  }

  private note(span: Span): void {
    this.changed.add(span);
    this.saveIn(SAVED_AFTER_MS);
  }

  private saveIn(ms: number): void {
    this.timer ??= setTimeout(() => inBackground(this.save()), ms).unref();
  }

  private async saveChanged(): Promise<void> {
    if (this.changed.size === 0) return;
    this.next ??= await nextSpan(this.db, this.jobId);
    const spans = [...this.changed];
    for (const span of spans) span.number ??= Math.min(this.next++, LAST_SPAN);
    // The row of all further ones counts them when they end.
    const due = spans.filter(({ number, ended_time }) => number! < LAST_SPAN || ended_time !== null);
    const rows = due.map((span) => ({ ...span }) as NumberedSpan);
    if (rows.length > 0) await saveSpans(this.db, this.jobId, rows);
    for (const [at, span] of due.entries())
      if (span.ended_time === rows[at]!.ended_time && span.ready_time === rows[at]!.ready_time)
        this.changed.delete(span);
  }
}
