/**
 * Connections to the controller, one for each request. Few requests are with the controller at once: it handles them on
 * one thread, where each may take milliseconds, and the jobs of everybody run there too. The others wait their turn, by
 * sender. Those with large bodies have places of their own, because each takes a place for as long as its body takes to
 * arrive, and to be read: short requests do not wait for them.
 */
import { connect, type Socket } from "node:net";
import { delay } from "../base/clock.ts";
import {
  FORWARDED_AT_ONCE_MAX,
  FORWARDED_HOLD_MS,
  FORWARDED_LARGE_AT_ONCE_MAX,
  FORWARDED_WAIT_MS,
} from "../contracts/limits/requests.ts";
import { ControllerPlaces, type Sender } from "./connections/controller-places.ts";

/** How often it tries to connect to a controller that restarts. */
const RETRY_MS = 20;

export interface ControllerConnection {
  socket: Socket;
  /** The controller has answered: the next request may go. Implied after FORWARDED_HOLD_MS. */
  answered(): void;
}

export class ControllerConnections {
  private readonly path: string;
  private readonly places = new ControllerPlaces(FORWARDED_AT_ONCE_MAX);
  private readonly placesOfLarge = new ControllerPlaces(FORWARDED_LARGE_AT_ONCE_MAX);

  /** `path`: the controller's Unix socket. */
  constructor(path: string) {
    this.path = path;
  }

  /**
   * Undefined if the controller does not answer in time, or `isOver`: the client has left. Throws as
   * `ControllerPlaces.turn`. `isLarge`: its body is.
   */
  async connect(
    sender: Sender,
    isOver: () => boolean,
    isLarge = false,
  ): Promise<ControllerConnection | undefined> {
    const places = isLarge ? this.placesOfLarge : this.places;
    if (!(await places.turn(sender, isOver))) return undefined;
    const socket = await connectWithin(this.path, FORWARDED_WAIT_MS, isOver);
    if (socket === undefined) {
      places.leave(sender);
      return undefined;
    }
    let isHeld = true;
    const answered = () => {
      clearTimeout(timer);
      if (isHeld) places.leave(sender);
      isHeld = false;
    };
    const timer = setTimeout(answered, FORWARDED_HOLD_MS);
    socket.once("close", answered);
    return { socket, answered };
  }
}

/** Connects to a Unix socket, and tries again while nobody listens. */
async function connectWithin(
  path: string,
  waitMs: number,
  isOver: () => boolean,
): Promise<Socket | undefined> {
  for (
    const deadline = performance.now() + waitMs;
    performance.now() < deadline && !isOver();
    await delay(RETRY_MS)
  ) {
    const socket = await new Promise<Socket | undefined>((resolve) => {
      const attempt = connect({ path });
      attempt.once("connect", () => resolve(attempt)).once("error", () => resolve(undefined));
    });
    if (socket !== undefined) return socket;
  }
  return undefined;
}
