/** Names of dead letter queues, and what a message in one looks like (docs/contract/failing-batches.md#queue-names). */
import { QUEUE_NAME_LENGTH_MAX } from "./limits.ts";

export type QueueName =
  | { kind: "quern"; name: string }
  | { kind: "sqs"; arn: string; region: string; account: string; name: string };

const NAME = "[A-Za-z0-9_-]{1,80}(?:\\.fifo)?";
const OWN_PATTERN = `^(?:arn:quern:queue:)?(${NAME})$`;
const SQS_PATTERN = `^arn:aws[a-z-]*:sqs:([a-z0-9-]+):([0-9]+):(${NAME})$`;
const OWN = new RegExp(OWN_PATTERN);
const SQS = new RegExp(SQS_PATTERN);

/** Either, for the API's description. */
export const QUEUE_NAME_PATTERN = `${OWN_PATTERN}|${SQS_PATTERN}`;

/** Undefined when it names no queue. */
export function parseQueueName(arn: string): QueueName | undefined {
  if (arn.length > QUEUE_NAME_LENGTH_MAX) return undefined;
  const own = OWN.exec(arn);
  if (own !== null) return { kind: "quern", name: own[1]! };
  const sqs = SQS.exec(arn);
  return sqs === null ? undefined : { kind: "sqs", arn, region: sqs[1]!, account: sqs[2]!, name: sqs[3]! };
}

/** The one name under which letters of a queue are kept; an ARN for SQS. */
export function queueKey(queue: QueueName): string {
  return queue.kind === "quern" ? queue.name : queue.arn;
}

export const QUEUE_NAME_RULE =
  "must be arn:aws:sqs:<region>:<account>:<name>, or the name of a queue of Quern's own: letters, digits, - and _, at most 80, with or without .fifo";

/** What a letter says of its batch. All values are strings, as SQS has them. */
export interface LetterAttributes {
  api_name: string;
  job_id: string;
  batch_id: string;
  /** Attempts that the batch was charged. */
  receive_count: string;
  round: string;
  /** JSON: `{type, message, traceback}`. */
  error: string;
}
