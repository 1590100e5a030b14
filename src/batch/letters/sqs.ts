/**
 * Sends messages to SQS queues (docs/contract/failing-batches.md#sqs-delivery), ten a request. FIFO queues get group
 * and deduplication ids. The client is loaded on first use.
 */
import type { SendMessageBatchRequestEntry, SQSClient } from "@aws-sdk/client-sqs";
import {
  LETTER_BYTES_MAX,
  LETTERS_A_REQUEST,
  SQS_ADDRESSES_MAX,
  SQS_ANSWER_BYTES_MAX,
  SQS_CLIENTS_MAX,
} from "../../contracts/limits/jobs.ts";
import { type DeadLetterAttributes, parseQueueName, type QueueName } from "../../contracts/queues.ts";
import { sqsSdk } from "../../object-store/aws-sdk.ts";
import { hideCredentials, SILENT } from "../../object-store/backends/aws-errors.ts";
import { boundAnswers } from "../../object-store/backends/bound-answers.ts";
import type { DeadLetter } from "./letters.ts";
import { Recent } from "./recent.ts";

type SqsName = Extract<QueueName, { kind: "sqs" }>;

/** Beyond these times, a queue counts as one that does not respond. */
const TIMEOUTS = { connectionTimeout: 5_000, requestTimeout: 5_000, throwOnRequestTimeout: true };

/** Even if its batch fills a message, at least this much of its error is sent. SQS may refuse such a message. */
const ERROR_BYTES_LEAST = 256;
/** Names and types of nine attributes. */
const ATTRIBUTE_OVERHEAD_BYTES = 180;

/** The result for each message. Those in neither list must be retried. */
export interface Delivered {
  sent: DeadLetter[];
  refused: { letter: DeadLetter; reason: string }[];
}

/** Errors that every later try would repeat. */
const FOR_GOOD =
  /^(QueueDoesNotExist|AWS\.SimpleQueueService\.NonExistentQueue|InvalidAddress|InvalidMessageContents|UnsupportedOperation|AWS\.SimpleQueueService\.UnsupportedOperation|InvalidParameterValue|MissingParameter|BatchRequestTooLong|AccessDenied|AccessDeniedException|KmsAccessDenied)$/;

export class Sqs {
  private readonly clients = new Recent<Promise<SQSClient>>(SQS_CLIENTS_MAX);
  /** Shared by all clients, so that no connection belongs to a client that is dropped. */
  private requestHandler: SQSClient["config"]["requestHandler"] | undefined;
  private readonly urls = new Recent<string>(SQS_ADDRESSES_MAX);

  /** True if the queue certainly does not exist; false also if that cannot be determined. */
  async isMissing(queue: SqsName): Promise<boolean> {
    return this.urlOf(queue).then(
      () => false,
      (error: Error) => /QueueDoesNotExist|NonExistentQueue/.test(error.name),
    );
  }

  /** Sends messages of one queue, at most LETTERS_A_REQUEST. Throws if the queue does not respond. */
  async send(arn: string, letters: readonly DeadLetter[]): Promise<Delivered> {
    const queue = parseQueueName(arn) as SqsName;
    const { SendMessageBatchCommand } = await sqsSdk();
    const entries = letters.map((letter, i) => entryOf(queue, letter, String(i)));
    try {
      const client = await this.client(queue.region);
      const QueueUrl = await this.urlOf(queue);
      const answer = await client.send(new SendMessageBatchCommand({ QueueUrl, Entries: entries }));
      const failed = answer.Failed?.filter(
        ({ SenderFault, Code }) => SenderFault === true && !/Throttl/.test(Code ?? ""),
      );
      return {
        sent: (answer.Successful ?? []).flatMap(({ Id }) => letters[Number(Id)] ?? []),
        refused: (failed ?? []).flatMap(({ Id, Code, Message }) => {
          const letter = letters[Number(Id)];
          const reason = `${arn}: ${Code}${Message === undefined ? "" : `: ${Message}`}`;
          return letter === undefined ? [] : [{ letter, reason }];
        }),
      };
    } catch (error) {
      const { name, message } = error as Error;
      if (!FOR_GOOD.test(name)) throw error;
      // One refused message must not take nine others with it.
      if (letters.length > 1) return this.oneByOne(arn, letters);
      return { sent: [], refused: [{ letter: letters[0]!, reason: `${arn}: ${name}: ${message}` }] };
    }
  }

  private async oneByOne(arn: string, letters: readonly DeadLetter[]): Promise<Delivered> {
    const all: Delivered = { sent: [], refused: [] };
    for (const letter of letters) {
      const { sent, refused } = await this.send(arn, [letter]);
      all.sent.push(...sent);
      all.refused.push(...refused);
    }
    return all;
  }

  private client(region: string): Promise<SQSClient> {
    const known = this.clients.get(region);
    if (known !== undefined) return known;
    const opened = sqsSdk().then(({ SQSClient }) => {
      const client = new SQSClient({
        region,
        maxAttempts: 1,
        // The service names the address of a queue. Requests go to the service that was asked, wherever it says.
        useQueueUrlAsEndpoint: false,
        logger: SILENT,
        requestHandler: this.requestHandler ?? TIMEOUTS,
      });
      this.requestHandler ??= client.config.requestHandler;
      boundAnswers(client, () => SQS_ANSWER_BYTES_MAX);
      hideCredentials(client);
      return client;
    });
    this.clients.set(region, opened);
    return opened;
  }

  private async urlOf({ arn, region, account, name }: SqsName): Promise<string> {
    const known = this.urls.get(arn);
    if (known !== undefined) return known;
    const { GetQueueUrlCommand } = await sqsSdk();
    const client = await this.client(region);
    const answer = await client.send(
      new GetQueueUrlCommand({ QueueName: name, QueueOwnerAWSAccountId: account }),
    );
    this.urls.set(arn, answer.QueueUrl!);
    return answer.QueueUrl!;
  }
}

function entryOf(queue: SqsName, letter: DeadLetter, id: string): SendMessageBatchRequestEntry {
  const attributes = JSON.parse(letter.attributes_json) as DeadLetterAttributes;
  const body = Buffer.from(letter.body).toString("utf8");
  const { error, ...others } = attributes;
  const taken = letter.body.length + Buffer.byteLength(JSON.stringify(others));
  const cut = cutText(
    error,
    Math.max(ERROR_BYTES_LEAST, LETTER_BYTES_MAX - taken - ATTRIBUTE_OVERHEAD_BYTES),
  );
  return {
    Id: id,
    MessageBody: body,
    MessageAttributes: Object.fromEntries(
      Object.entries({ ...others, error: cut }).map(([name, value]) => [
        name,
        { DataType: "String", StringValue: legalText(value) },
      ]),
    ),
    ...(queue.name.endsWith(".fifo")
      ? {
          // One group per message: none waits for another.
          MessageGroupId: aboutOf(attributes),
          MessageDeduplicationId: `${aboutOf(attributes)}-${attributes.round}`,
        }
      : {}),
  };
}

/** What a message is about: a batch, or an item of it. */
function aboutOf({ batch_id, item_index }: DeadLetterAttributes): string {
  return item_index === undefined ? batch_id : `${batch_id}-item-${item_index}`;
}

/** Replaces characters that SQS does not accept. */
function legalText(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: exactly those are meant
  return text.replace(/[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]/g, "\ufffd");
}

/** Cuts text to `bytes` bytes of UTF-8. */
function cutText(text: string, bytes: number): string {
  const legal = legalText(text);
  if (Buffer.byteLength(legal) <= bytes) return legal;
  return Buffer.from(legal)
    .subarray(0, bytes - 3)
    .toString("utf8")
    .replace(/\ufffd$/, "");
}

/** Groups messages into requests, limited by number and bytes. */
export function requestsOf(letters: readonly DeadLetter[]): DeadLetter[][] {
  const requests: DeadLetter[][] = [];
  let bytes = Number.POSITIVE_INFINITY;
  for (const letter of letters) {
    const size = letter.body.length + letter.attributes_json.length;
    const last = requests[requests.length - 1];
    if (last !== undefined && last.length < LETTERS_A_REQUEST && bytes + size <= LETTER_BYTES_MAX) {
      last.push(letter);
      bytes += size;
    } else {
      requests.push([letter]);
      bytes = size;
    }
  }
  return requests;
}
