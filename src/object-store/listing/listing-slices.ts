/**
 * All listings of this process take turns on the event loop: those of checks, jobs and dry runs, their requests and
 * pages. Otherwise each listing would have a slice of its own in every turn, and fifty of them would block the event
 * loop for half a second.
 */
import { TimeSlices } from "../../base/loop/turns.ts";
import { SLICE_MS } from "../../contracts/limits/event-loop.ts";

export const LISTING_SLICES = new TimeSlices(SLICE_MS);
