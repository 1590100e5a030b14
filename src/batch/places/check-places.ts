/**
 * How many submissions and dry runs look for their first file at once. Each lists a store on the event loop. The others
 * wait: a sender that has many waits only for itself, and the checks of one API leave places for those of others.
 */
import type { BodyOwner } from "../../access/body-budget.ts";
import { ServiceError } from "../../contracts/errors.ts";
import {
  CHECKS_MAX,
  CHECKS_OF_A_SENDER_MAX,
  CHECKS_OF_AN_API_MAX,
  CHECKS_WAITING_OF_A_SENDER_MAX,
} from "../../contracts/limits/submissions.ts";
import { FairPlaces } from "./fair-places.ts";

export class CheckPlaces {
  /** Taken first. So at most a few checks of a sender wait among those of its API. */
  private readonly bySender = new FairPlaces({
    ofAll: Number.POSITIVE_INFINITY,
    ofAnOwner: CHECKS_OF_A_SENDER_MAX,
  });
  private readonly byApi = new FairPlaces({ ofAll: CHECKS_MAX, ofAnOwner: CHECKS_OF_AN_API_MAX });

  /**
   * Resolves to the function that gives the place back; undefined if `over` is aborted before there is a place. Throws
   * `queue_full` if too many checks of the sender wait.
   */
  async take({ sender, api }: BodyOwner, over: AbortSignal): Promise<(() => void) | undefined> {
    if (this.bySender.waitingOf(sender) >= CHECKS_WAITING_OF_A_SENDER_MAX) throw tooManyWaiting();
    const leaveSender = await this.bySender.take(sender, over);
    if (leaveSender === undefined) return undefined;
    const leaveApi = await this.byApi.take(api, over);
    if (leaveApi === undefined) leaveSender();
    return (
      leaveApi &&
      (() => {
        leaveApi();
        leaveSender();
      })
    );
  }
}

function tooManyWaiting(): ServiceError {
  return new ServiceError(
    "queue_full",
    `${CHECKS_WAITING_OF_A_SENDER_MAX} submissions and dry runs of this key wait until their files are looked for; try again in a second`,
    { retryAfterS: 1 },
  );
}
