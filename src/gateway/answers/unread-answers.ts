/**
 * Bounds what this process holds of responses whose clients do not read them: the socket has not taken the bytes.
 * Beyond the bound, the connections of the owner that holds most are closed, the oldest first; those that still take
 * something come later. One that takes nothing for a minute is closed too. One instance per process.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { contain } from "../../base/boundary.ts";
import { FewEachTurn, type NextTurn } from "../../base/loop/turns.ts";
import { LATE_AT_ONCE_MAX } from "../../contracts/limits/requests.ts";
import {
  UNREAD_ANSWERS_BYTES_MAX,
  UNREAD_ANSWERS_LOOKED_AT_MAX,
  UNREAD_ANSWERS_SHARE,
  UNREAD_FORWARDED_BYTES,
  UNTAKEN_MS,
  UNTAKEN_POLL_MS,
} from "../../contracts/limits/responses.ts";
import { unreadForwardedMax } from "../connections/open-files.ts";
import { ownerOf } from "../connections/owners.ts";
import { Shares } from "../connections/shares.ts";
import { takenBytes } from "../connections/taken-bytes.ts";

/** Where more of a response comes from: the controller, or a stream of which pieces wait here. */
type Source = Pick<IncomingMessage, "readableEnded" | "readableLength"> | { readonly waitingBytes: number };

interface Unread {
  readonly owner: string;
  /** Undefined if the response is complete. */
  readonly source: Source | undefined;
  /** What was held at the last look. */
  bytes: number;
  /** What the client had taken of everything on the connection, and when that last changed (performance.now()). */
  taken: number;
  takenMs: number;
  readonly onClose: () => void;
}

/** Those that were longest not looked at, or that took nothing when they were, come first. */
type Ring = Map<ServerResponse, Unread>;

export class UnreadAnswers {
  private readonly most: number;
  /** What the source of a forwarded response counts for: its bytes, and its file. */
  private readonly sourceBytes: number;
  private held = 0;
  private readonly unread: Ring = new Map();
  private readonly byOwner = new Map<string, Ring>();
  private readonly shares: Shares;
  private readonly closes: FewEachTurn;
  private timer: NodeJS.Timeout | undefined;

  constructor(most: number, sourcesMost = unreadForwardedMax(), nextTurn?: NextTurn) {
    this.closes = new FewEachTurn("a connection that nobody reads", LATE_AT_ONCE_MAX, nextTurn);
    this.most = most;
    this.sourceBytes = Math.max(UNREAD_FORWARDED_BYTES, Math.ceil(most / sourcesMost));
    this.shares = new Shares(most / UNREAD_ANSWERS_SHARE);
  }

  /**
   * Called after the end of a response, and when one that comes from `source` has to wait for its client. On the hot
   * path: if the socket has taken everything, this is one check.
   */
  add(response: ServerResponse, source?: Source): void {
    if (response.writableLength === 0 || response.destroyed) return;
    const known = this.unread.get(response);
    if (known === undefined) this.keep(response, source);
    else this.look(response, known, performance.now());
    if (this.held > this.most) this.closeSome();
  }

  /** Called once in each period: closes those whose client has taken nothing for UNTAKEN_MS. */
  check(nowMs: number): void {
    for (const [response, unread] of this.unread) {
      this.look(response, unread, nowMs);
      if (this.unread.has(response) && nowMs - unread.takenMs >= UNTAKEN_MS) this.close(response);
    }
    if (this.unread.size > 0) return;
    clearInterval(this.timer);
    this.timer = undefined;
  }

  private keep(response: ServerResponse, source: Source | undefined): void {
    const { socket } = response.req;
    const unread: Unread = {
      owner: ownerOf(socket),
      source,
      bytes: 0,
      taken: takenBytes(socket),
      takenMs: performance.now(),
      onClose: () => this.forget(response),
    };
    this.unread.set(response, unread);
    const ring = this.byOwner.get(unread.owner);
    if (ring === undefined) this.byOwner.set(unread.owner, new Map([[response, unread]]));
    else ring.set(response, unread);
    this.count(unread, this.heldBytes(response, source));
    response.on("close", unread.onClose);
    this.timer ??= setInterval(
      () => contain("the responses that nobody reads", () => this.check(performance.now())),
      UNTAKEN_POLL_MS,
    ).unref();
  }

  /** Whether the client has taken something since the last look. Forgets the response if it has taken everything. */
  private look(response: ServerResponse, unread: Unread, nowMs: number): boolean {
    const { socket } = response.req;
    const bytes = this.heldBytes(response, unread.source);
    if (bytes === 0) {
      this.forget(response);
      return true;
    }
    this.count(unread, bytes);
    const taken = takenBytes(socket);
    const hasTaken = taken !== unread.taken;
    // A response whose turn has not come keeps its client waiting, not the other way round.
    if (hasTaken || socket.writableLength === 0) unread.takenMs = nowMs;
    unread.taken = taken;
    return hasTaken;
  }

  /** The newest one stays, however large it is. */
  private closeSome(): void {
    while (this.held > this.most && this.unread.size > 1) {
      const owner = this.shares.largest;
      const response = this.first(owner === undefined ? this.unread : this.byOwner.get(owner)!);
      if (response !== undefined) this.close(response);
    }
  }

  /** The first of whose connection the client takes nothing, else simply the first; undefined if none must go now. */
  private first(ring: Ring): ServerResponse | undefined {
    const nowMs = performance.now();
    let looks = Math.min(ring.size, UNREAD_ANSWERS_LOOKED_AT_MAX);
    for (const [response, unread] of ring) {
      if (looks-- === 0) break;
      const hasTaken = this.look(response, unread, nowMs);
      if (this.held <= this.most) return undefined;
      if (!hasTaken) return response;
      if (!ring.has(response)) continue;
      ring.delete(response);
      ring.set(response, unread);
    }
    return ring.keys().next().value;
  }

  /** Not the response: if it is not its turn yet, it has no socket. */
  private close(response: ServerResponse): void {
    this.forget(response);
    this.closes.add(() => response.req.socket.destroy());
  }

  private heldBytes(response: ServerResponse, source: Source | undefined): number {
    const written = response.writableLength;
    if (written === 0 || source === undefined) return written;
    if ("waitingBytes" in source) return written + source.waitingBytes;
    if (source.readableEnded) return written;
    return written + Math.max(source.readableLength, this.sourceBytes);
  }

  private count(unread: Unread, bytes: number): void {
    this.held += bytes - unread.bytes;
    this.shares.add(unread.owner, bytes - unread.bytes);
    unread.bytes = bytes;
  }

  private forget(response: ServerResponse): void {
    const unread = this.unread.get(response);
    if (unread === undefined) return;
    response.removeListener("close", unread.onClose);
    this.count(unread, 0);
    this.unread.delete(response);
    const ring = this.byOwner.get(unread.owner)!;
    ring.delete(response);
    if (ring.size === 0) this.byOwner.delete(unread.owner);
  }
}

export const unreadAnswers = new UnreadAnswers(UNREAD_ANSWERS_BYTES_MAX);
