/**
 * How many jobs enqueue at once. Each holds its selection of files, which may be megabytes, and lists and reads on the
 * event loop. The others wait for a place: each API in turn gets the next one, however many jobs another one has. Pure.
 */
import { ENQUEUING_MAX, ENQUEUING_OF_AN_API_MAX } from "../../contracts/limits/jobs.ts";
import { FairPlaces } from "../places/fair-places.ts";

/**
 * Items that came with the submission are enqueued in milliseconds: they do not wait behind listings of stores.
 * `suspects`: jobs that were being enqueued whenever the controller died (enqueuing-deaths.ts).
 */
export interface PlacesByInput {
  items: EnqueuePlaces;
  files: EnqueuePlaces;
  suspects: SuspectPlace;
}

/** Places as the turns of one job see them. */
export interface DescribedPlaces extends Pick<FairPlaces, "take" | "isAwaited"> {
  /** Says what a job of this API waits for, and names no other API. */
  describe(api: string): string;
}

export class EnqueuePlaces extends FairPlaces implements DescribedPlaces {
  constructor() {
    super({ ofAll: ENQUEUING_MAX, ofAnOwner: ENQUEUING_OF_AN_API_MAX });
  }

  describe(api: string): string {
    const taken = this.takenOf(api);
    const held =
      taken < ENQUEUING_OF_AN_API_MAX ? `${this.takenInAll} jobs of this server` : `${taken} jobs of ${api}`;
    return `the job waits until it may be enqueued: ${held} are being enqueued, which is the limit`;
  }
}

/** One place: if the controller dies again, the job that had it is the cause. */
export class SuspectPlace extends FairPlaces implements DescribedPlaces {
  constructor() {
    super({ ofAll: 1, ofAnOwner: 1 });
  }

  describe(): string {
    return "the job waits until it may be enqueued: the controller died repeatedly while several jobs were, so they are enqueued one after the other";
  }
}
