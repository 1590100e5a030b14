/**
 * Bounds how long one turn of the event loop reads connections. Node reads every connection that has sent something in
 * one turn, before any timer: 6,000 connections with 19 pipelined requests each took 14 s, and no other request was
 * served meanwhile. So a turn that has read for READING_OF_A_TURN_MS stops reading all connections. The next turns read
 * a few of them each: those of keys, of addresses and new ones alternately, and of these first those whose owners have
 * cost least lately. So a new client does not wait for many that keep the gateway busy. What a client has sent stays in
 * the system meanwhile; no request waits here. One instance per process.
 */
import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { JoinedRequest } from "../../../access/joined-request.ts";
import {
  CONNECTIONS_READ_AGAIN,
  READING_OF_A_BYTE_MS,
  READING_OF_A_TURN_MS,
} from "../../../contracts/limits/requests.ts";
import type { CountedRequest } from "../dropped-body.ts";
import { ownerOf } from "../owners.ts";
import { type AcceptingTurns, acceptingTurns } from "./accepting-turns.ts";
import { OwnerCosts } from "./owner-costs.ts";
import { type Handle, type ReadConnection, WaitingConnections } from "./waiting-connections.ts";

/** The clock is read once for so many parts: a request without a body has two, which take 0.1 ms together. */
const PARTS_AT_ONCE = 16;

export class ReadingTurns {
  /** The class of requests of all listeners. */
  readonly Request = countedRequest(
    () => this.count(),
    (socket) => this.yieldTurn(socket),
  );
  private readonly nextTurn: (begin: () => void) => void;
  private readonly nowMs: () => number;
  private readonly accepting: AcceptingTurns;
  private readonly reading = new Set<ReadConnection>();
  private readonly bySocket = new WeakMap<Socket, ReadConnection>();
  private readonly costs = new OwnerCosts();
  private readonly waiting = new WaitingConnections(this.costs);
  /** What the connections had sent that this turn reads again. */
  private again = new Map<ReadConnection, number>();
  /** Those that a turn was to read again and did not come to. They come first. */
  private missed: ReadConnection[] = [];
  /** How many of those that this turn was to read again had nothing read when it stopped. */
  private unread = 0;
  private parts = 0;
  /** Undefined while the turn is not measured. */
  private beganMs: number | undefined;
  /** How long the turns took since those were chosen. */
  private turnsMs = 0;
  private isSpent = false;
  private atOnce = CONNECTIONS_READ_AGAIN;

  constructor(
    nextTurn: (begin: () => void) => void = setImmediate,
    nowMs = () => performance.now(),
    accepting = acceptingTurns,
  ) {
    this.nextTurn = nextTurn;
    this.nowMs = nowMs;
    this.accepting = accepting;
  }

  add(socket: Socket): void {
    const connection = { socket, openedMs: this.nowMs() };
    this.bySocket.set(socket, connection);
    if (this.isAnyWaiting) this.wait(connection, connection.openedMs);
    else this.reading.add(connection);
    const count = () => this.count();
    socket.on("end", count).on("error", count);
    socket.once("close", () => {
      this.reading.delete(connection);
      this.count();
    });
  }

  /**
   * The head of a request came, a part of its body or its end, or a connection ended, or something that takes as long as
   * so many of these. On the hot path.
   */
  count(parts = 1): void {
    this.parts += parts;
    if (this.parts >= PARTS_AT_ONCE) this.measure();
  }

  /** Others are read before this connection is read again. */
  private yieldTurn(socket: Socket): void {
    const connection = this.bySocket.get(socket);
    if (connection === undefined || !this.reading.delete(connection)) return;
    hold(connection);
    this.waiting.pushLast(connection);
    if (this.beganMs === undefined) this.measureFrom(this.nowMs());
  }

  private measure(): void {
    this.parts = 0;
    const nowMs = this.nowMs();
    if (this.beganMs === undefined) this.measureFrom(nowMs);
    else if (nowMs - this.beganMs >= READING_OF_A_TURN_MS) this.stopAll(nowMs);
  }

  private measureFrom(nowMs: number): void {
    this.beganMs = nowMs;
    this.nextTurn(() => this.begin());
  }

  private stopAll(nowMs: number): void {
    this.isSpent = true;
    for (const connection of this.reading) {
      const isUnread = this.again.get(connection) === connection.socket.bytesRead;
      if (isUnread) this.unread++;
      if (!isUnread || !this.mayMiss) this.wait(connection, nowMs);
      else {
        hold(connection);
        this.missed.push(connection);
      }
    }
    this.reading.clear();
  }

  private wait(connection: ReadConnection, nowMs: number): void {
    hold(connection);
    this.waiting.push(connection, nowMs);
  }

  /** Only a few, and none that was alone in its turn, because their clients may have sent nothing. */
  private get mayMiss(): boolean {
    return this.again.size > 1 && this.missed.length < CONNECTIONS_READ_AGAIN;
  }

  private begin(): void {
    const nowMs = this.nowMs();
    this.turnsMs += nowMs - this.beganMs!;
    this.beganMs = undefined;
    this.parts = 0;
    if (!this.isAnyWaiting && this.again.size === 0) this.turnsMs = 0;
    else if (this.isAnyWaiting && this.accepting.areDue()) this.measureFrom(nowMs);
    else this.readNext(nowMs);
  }

  private get isAnyWaiting(): boolean {
    return this.missed.length > 0 || !this.waiting.isEmpty;
  }

  private readNext(nowMs: number): void {
    this.charge(nowMs);
    this.atOnce = this.nextAtOnce();
    this.isSpent = false;
    this.unread = 0;
    const next = this.missed.splice(0, this.atOnce);
    next.push(...this.waiting.take(this.atOnce - next.length));
    this.again = new Map(next.map((connection) => [connection, connection.socket.bytesRead]));
    // Before anything that could throw: nobody else reads what waits.
    if (next.length > 0) this.measureFrom(nowMs);
    for (const connection of next) this.readAgain(connection);
  }

  /** The owners of those that were read share the time of these turns by their bytes, up to what these can cost. */
  private charge(nowMs: number): void {
    const read = [...this.again].map(([{ socket }, before]) => ({
      socket,
      bytes: socket.bytesRead - before,
    }));
    const all = read.reduce((sum, { bytes }) => sum + bytes, 0);
    const msOfAByte = Math.min(this.turnsMs / all, READING_OF_A_BYTE_MS);
    for (const { socket, bytes } of read)
      if (bytes > 0) this.costs.add(ownerOf(socket), bytes * msOfAByte, nowMs);
    this.turnsMs = 0;
  }

  /**
   * The system decides in which order connections are read, and prefers those that sent first. So a turn that missed
   * some is followed by one with as many as it read: each of them is read then, or alone.
   */
  private nextAtOnce(): number {
    if (this.again.size === 0) return CONNECTIONS_READ_AGAIN;
    return this.isSpent ? Math.max(1, this.again.size - this.unread) : 2 * this.atOnce;
  }

  private readAgain(connection: ReadConnection): void {
    if (connection.socket.destroyed) return;
    this.reading.add(connection);
    release(connection);
  }
}

/**
 * Nothing is read from it until it is released, whatever Node wants: its parser pauses and resumes a connection between
 * the parts of a body, and read those of 16 connections for 3 s outside of their turns.
 */
function hold({ socket }: ReadConnection): void {
  const handle = socket._handle;
  if (!handle?.readStop) return;
  if (handle.reading) handle.readStop();
  handle.readStart = readNothing;
}

/** Reads it if Node wants to. */
function release({ socket }: ReadConnection): void {
  const handle = socket._handle;
  if (!handle?.readStop) return;
  handle.readStart = (Object.getPrototypeOf(handle) as Handle).readStart;
  if (handle.reading && !socket.readableEnded) handle.readStart();
}

/** Zero is success, to Node. */
function readNothing(): number {
  return 0;
}

/** Counts what Node's parser makes, also for requests that Node answers itself. */
function countedRequest(count: () => void, yieldTurn: (socket: Socket) => void): typeof IncomingMessage {
  return class extends JoinedRequest implements CountedRequest {
    yieldTurn(): void {
      yieldTurn(this.socket);
    }

    constructor(socket: Socket) {
      super(socket);
      count();
    }

    override push(part: unknown, encoding?: BufferEncoding): boolean {
      count();
      return super.push(part, encoding);
    }
  };
}

export const readingTurns = new ReadingTurns();
