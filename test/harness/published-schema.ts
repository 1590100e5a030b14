/** The schema of a submission as the server publishes it, in the hands of a validator that is not ours. */
import { Ajv2020 } from "ajv/dist/2020.js";
import { submissionDescription } from "../../src/contracts/http/submission-description.ts";

const validate = new Ajv2020({ strict: false, allErrors: true }).compile(submissionDescription());

/** What a client that checks against the schema would be told; empty where it would send the submission. */
export function schemaErrors(submission: unknown): string[] {
  if (validate(submission)) return [];
  return (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`);
}

/** Fails the test that sent a submission which the server took, and whose schema says no. */
export function expectPublished(body: string): void {
  const errors = schemaErrors(JSON.parse(body));
  if (errors.length > 0)
    throw new Error(`the server took what its schema denies: ${errors.join("; ")}\n${body.slice(0, 2000)}`);
}
