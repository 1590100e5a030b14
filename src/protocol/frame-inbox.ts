/** Who gets the frames of a connection: first the handshake, then the connection's owner. */
import type { OnFrame } from "./frames.ts";

/** Passes the first frame to the handshake, and later frames to the connection, in a later turn. */
export class FrameInbox {
  private early: Parameters<OnFrame>[] = [];
  private onFrame: OnFrame | undefined;
  private readonly onBroken: (error: unknown) => void;

  constructor(onBroken: (error: unknown) => void) {
    this.onBroken = onBroken;
  }

  take(type: number, flags: number, id: number, body: Buffer): void {
    if (this.onFrame !== undefined) this.onFrame(type, flags, id, body);
    else this.early.push([type, flags, id, Buffer.from(body)]);
  }

  /** Passes the first frame to `onFirst`, once. */
  first(onFirst: OnFrame): void {
    this.onFrame = (...frame) => {
      this.onFrame = undefined;
      onFirst(...frame);
    };
  }

  /** Passes frames to `onFrame` from now on. Earlier frames come first, once the owner has the connection. */
  open(onFrame: OnFrame): void {
    if (this.early.length === 0) {
      this.onFrame = onFrame;
      return;
    }
    setImmediate(() => {
      this.onFrame = onFrame;
      try {
        for (const frame of this.early) onFrame(...frame);
      } catch (error) {
        this.onBroken(error);
      }
      this.early = [];
    });
  }
}
