/** Checks, purely, whether an ACK can be true. If not, none of its counts is believed. */

import type { Ack } from "../../protocol/ack.ts";
import { ProtocolError } from "../../protocol/frame-rules.ts";
import type { Outstanding } from "./outstanding.ts";

/**
 * Throws if `ack` does not settle exactly the oldest deliveries at the worker, each once, or counts more bytes of rows
 * than the `outputBytes` that came.
 */
export function checkAck(ack: Ack, outstanding: Outstanding, outputBytes = 0): void {
  const { upTo, succeeded, failures } = ack;
  const count = succeeded + failures.length;
  if (!outstanding.endsAt(upTo, count))
    throw new ProtocolError(
      `an ACK up to delivery ${upTo} counts ${succeeded} successes and ${failures.length} failures, which does not match the ${outstanding.count} deliveries of the worker`,
    );
  const rowsBytes = ack.rows.reduce((sum, { bytes }) => sum + bytes, 0);
  if (rowsBytes > outputBytes)
    throw new ProtocolError(
      `an ACK counts ${rowsBytes} bytes of output, of which only ${outputBytes} have come`,
    );
  let before = 0;
  for (const { delivery } of failures) {
    if (delivery <= before || delivery > upTo || !outstanding.has(delivery))
      throw new ProtocolError(
        `an ACK up to delivery ${upTo} has a failure of delivery ${delivery}, which is not among those that it settles`,
      );
    before = delivery;
  }
}
