/**
 * A list of texts in a schema. Zod makes an issue for each wrong entry, of which there may be tens of thousands. Here the
 * first ones become issues, and the others are counted.
 */
import * as z from "zod";
import { ERRORS_SHOWN_MAX } from "../limits/responses.ts";

/** The member of an issue's `params` that says for how many entries it stands. */
const ENTRIES = "entries";

/** `text`: what each entry must be. Its messages are those of `z.array(text)`. */
export function textList(text: z.ZodString) {
  return z.array(z.custom<string>()).check(({ value, issues }) => {
    let others = 0;
    value.forEach((entry, at) => {
      const wrong = issuesOf(text, entry);
      if (issues.length < ERRORS_SHOWN_MAX)
        issues.push(...wrong.map((issue) => ({ ...issue, path: [at, ...(issue.path ?? [])] })));
      else others += wrong.length;
    });
    if (others > 0) issues.push(standIn(value, others));
  });
}

/** Zod's step below `safeParse`, which would make an error and its message for each entry. */
function issuesOf(text: z.ZodString, entry: unknown): z.core.$ZodRawIssue[] {
  const result = text._zod.run({ value: entry, issues: [] }, { async: false });
  return (result as z.core.ParsePayload).issues;
}

function standIn(input: unknown, others: number): z.core.$ZodRawIssue {
  return {
    code: "custom",
    input,
    message: `${others} more entries are wrong`,
    params: { [ENTRIES]: others },
  };
}

/** The number of entries for which a stand-in was made; undefined for any other issue. */
export function othersOf(issue: z.core.$ZodIssue): number | undefined {
  return issue.code === "custom" ? (issue.params?.[ENTRIES] as number | undefined) : undefined;
}
