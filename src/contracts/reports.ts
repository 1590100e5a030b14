/** What a gateway tells the controller once a second. */
import { z } from "zod";

export const reportSchema = z.object({
  /** The gateway's own id, new with each start. */
  gateway: z.string(),
  /** Requests that wait or run there, by API. */
  in_flight: z.record(z.string(), z.int()),
});
export type Report = z.infer<typeof reportSchema>;
