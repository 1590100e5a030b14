/** The schema of a submission as the server publishes it, checked by an independent validator. */
import { Ajv2020 } from "ajv/dist/2020.js";
import { submissionDescription } from "../../src/contracts/http/submission-description.ts";

const validate = new Ajv2020({ strict: false, allErrors: true }).compile(submissionDescription());

/** The errors that a client would get from the schema; empty if it would send the submission. */
export function schemaErrors(submission: unknown): string[] {
  if (validate(submission)) return [];
  return (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`);
}

/** Fails the test if the server accepted a submission that the schema rejects. */
export function expectPublished(body: string): void {
  const errors = schemaErrors(JSON.parse(body));
  if (errors.length > 0)
    throw new Error(`the server took what its schema denies: ${errors.join("; ")}\n${body.slice(0, 2000)}`);
}
