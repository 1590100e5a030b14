/** Names of dead letter queues, and the attributes of their messages (docs/contract/failing-batches.md#queue-names). */
import { QUEUE_NAME_LENGTH_MAX, SQS_REGION_LENGTH_MAX } from "./limits/submissions.ts";

export type QueueName =
  | { kind: "quern"; name: string }
  | { kind: "sqs"; arn: string; region: string; account: string; name: string };

const NAME = "[A-Za-z0-9_-]{1,80}(?:\\.fifo)?";
const OWN_PATTERN = `^(?:arn:quern:queue:)?(${NAME})$`;
/** Not only the form of Amazon's (eusc-de-east-1): other servers have their own, such as `elasticmq`. */
const REGION = `[a-z](?:[a-z0-9-]{0,${SQS_REGION_LENGTH_MAX - 2}}[a-z0-9])?`;
const SQS_PATTERN = `^arn:aws[a-z-]*:sqs:(${REGION}):([0-9]+):(${NAME})$`;
const OWN = new RegExp(OWN_PATTERN);
const SQS = new RegExp(SQS_PATTERN);

/** Either kind of name, for the API's description. */
export const QUEUE_NAME_PATTERN = `${OWN_PATTERN}|${SQS_PATTERN}`;

/** A cursor of the list of queues: a name as it is stored, also by releases with other rules for regions. */
export const QUEUE_CURSOR_PATTERN = `^[A-Za-z0-9_.:-]{1,${QUEUE_NAME_LENGTH_MAX}}$`;

/** Undefined if it is no name of a queue. */
export function parseQueueName(arn: string): QueueName | undefined {
  if (arn.length > QUEUE_NAME_LENGTH_MAX) return undefined;
  const own = OWN.exec(arn);
  if (own !== null) return { kind: "quern", name: own[1]! };
  const sqs = SQS.exec(arn);
  return sqs === null ? undefined : { kind: "sqs", arn, region: sqs[1]!, account: sqs[2]!, name: sqs[3]! };
}

/** The name under which a queue's messages are stored: for SQS, its ARN. */
export function queueKey(queue: QueueName): string {
  return queue.kind === "quern" ? queue.name : queue.arn;
}

export const QUEUE_NAME_RULE = `must be arn:aws:sqs:<region>:<account>:<name> (a region has at most ${SQS_REGION_LENGTH_MAX} characters), or the name of a queue of Quern's own: letters, digits, - and _, at most 80, with or without .fifo`;

/** The attributes of a message. All values are strings, as SQS requires. */
export interface DeadLetterAttributes {
  api_name: string;
  job_id: string;
  batch_id: string;
  /** Attempts that were charged to the batch. */
  receive_count: string;
  round: string;
  /** Of guilty items of a batch that was split: the index of the first one in its batch, and where it came from. */
  item_index?: string;
  source_path?: string;
  source_line?: string;
  /** JSON: `{type, message, traceback}`. */
  error: string;
}
