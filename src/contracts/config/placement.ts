/** The keys of `compute` that say how pods of a cluster run a worker (docs/contract/configuration.md#cluster-keys). */
import * as z from "zod";
import { PLACEMENT_ENTRIES_MAX } from "../limits/configuration.ts";
import { shortText } from "./scalars.ts";

const SUBDOMAIN = /^(?=.{1,253}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const entries = <Item extends z.ZodType>(item: Item, what: string) =>
  z
    .array(item, `must be a list of ${what}`)
    .max(PLACEMENT_ENTRIES_MAX, `must have at most ${PLACEMENT_ENTRIES_MAX}`);

const tolerationSchema = z.strictObject({
  key: shortText.optional(),
  operator: z.enum(["Equal", "Exists"], "must be Equal or Exists").optional(),
  value: shortText.optional(),
  effect: z
    .enum(
      ["NoSchedule", "PreferNoSchedule", "NoExecute"],
      "must be NoSchedule, PreferNoSchedule or NoExecute",
    )
    .optional(),
  toleration_seconds: z.int("must be an integer").min(0, "must be at least 0").optional(),
});

/** What belongs to the server would give its rights to user code. */
const isOwn = (name: string) => /^quern(-|$)/.test(name);

export const placementShape = {
  node_selector: z
    .record(z.string(), shortText, "must be a map of labels of nodes")
    .refine((labels) => Object.keys(labels).length <= PLACEMENT_ENTRIES_MAX, "has too many labels")
    .optional(),
  tolerations: entries(tolerationSchema, "tolerations").optional(),
  image: shortText.regex(/^\S+$/, "must be a name such as registry.example/image:1").optional(),
  service_account: shortText
    .regex(SUBDOMAIN, "must be the name of a ServiceAccount")
    .refine(
      (name) => !isOwn(name),
      "must not be the server's own: it has rights that user code must not have",
    )
    .optional(),
  secrets: entries(
    shortText
      .regex(SUBDOMAIN, "must be the name of a Secret")
      .refine((name) => !isOwn(name), "must not begin with quern: those are the server's own"),
    "names of Secrets",
  ).optional(),
  queue: shortText.regex(SUBDOMAIN, "must be the name of a LocalQueue of Kueue").optional(),
};
