/**
 * The texts of one stream that wait: for their turn of the event loop (text-turn.ts), or for the client to take what
 * was written before.
 */
import type { ServerResponse } from "node:http";
import { ownerOf } from "../connections/owners.ts";
import { EventTexts } from "./event-texts.ts";
import { textTurn } from "./text-turn.ts";

export class HeldTexts {
  readonly texts = new EventTexts();
  private readonly response: ServerResponse;
  private readonly onSlice: () => void;

  /** `onSlice` is called after each write. */
  constructor(response: ServerResponse, onSlice: () => void) {
    this.response = response;
    this.onSlice = onSlice;
    response.on("drain", () => {
      if (!this.texts.isEmpty) this.waitForTurn();
    });
  }

  /** Call after the first text, once everything before it was written. */
  begin(): void {
    if (!this.response.writableNeedDrain) this.waitForTurn();
  }

  private waitForTurn(): void {
    const { response } = this;
    textTurn.wait(ownerOf(response.req.socket), {
      handle: () => this.writeNext(),
      fail: () => response.destroy(),
    });
  }

  /** Writes the next slice; returns its length. */
  private writeNext(): number {
    const { response, texts } = this;
    if (response.destroyed || texts.isEmpty) return 0;
    const { event, bytes } = texts.next();
    response.write(event);
    if (!texts.isEmpty && !response.writableNeedDrain) this.waitForTurn();
    this.onSlice();
    return bytes;
  }
}
