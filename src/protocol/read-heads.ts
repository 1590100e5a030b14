/**
 * Reads the heads of a worker's responses, without trusting them. An unreadable head fails its own request only. No
 * function here throws.
 */
import { isMap, parseJson } from "./loose-json.ts";
import { type AnswerHead, decodeResult, type StreamHead } from "./messages.ts";

/** Returned instead of a head that cannot be read. */
export class UnreadableHead extends Error {}

export interface ReadResult {
  predictUs: number;
  /** Missing if the response is JSON with status 200. */
  head: AnswerHead | undefined;
  /** A view. */
  body: Buffer;
}

export function readResult(message: Buffer): ReadResult | UnreadableHead {
  try {
    const { predictUs, head: text, body } = decodeResult(message);
    const head = text === undefined ? undefined : readHead(text);
    return head instanceof UnreadableHead ? head : { predictUs, head, body };
  } catch (error) {
    return new UnreadableHead((error as Error).message);
  }
}

/** The head of a RESULT or a STREAM. */
function readHead(bytes: Buffer): AnswerHead | UnreadableHead {
  const head = parseJson(bytes);
  if (!isMap(head)) return new UnreadableHead("it is not a JSON object");
  if (head.status !== undefined && !isStatus(head.status))
    return new UnreadableHead(`its status is ${JSON.stringify(head.status)}`);
  if (head.headers !== undefined && !isHeaders(head.headers))
    return new UnreadableHead("its headers are not pairs of strings");
  if (!isCounted(head)) return new UnreadableHead("its counts are neither classes nor numbers");
  return head;
}

export function readStreamHead(bytes: Buffer): StreamHead | UnreadableHead {
  const head = readHead(bytes);
  if (head instanceof UnreadableHead) return head;
  const { format } = head as Partial<StreamHead>;
  return format === "json" || format === "text" || format === "raw"
    ? { ...head, format }
    : new UnreadableHead(`its format is ${JSON.stringify(format)}`);
}

/** The status of a final response; 1xx is not one. */
function isStatus(status: unknown): status is number {
  return Number.isInteger(status) && (status as number) >= 200 && (status as number) <= 599;
}

/** `monitoring`: texts, numbers, or counts of these. */
function isCounted({ classes, values, class_counts, value_sum }: Record<string, unknown>): boolean {
  const isListOf = (list: unknown, isOne: (one: unknown) => boolean) =>
    list === undefined || (Array.isArray(list) && list.every(isOne));
  const isCount = (pair: unknown) =>
    Array.isArray(pair) && typeof pair[0] === "string" && Number.isSafeInteger(pair[1]);
  const isSum = (sum: unknown) =>
    isMap(sum) &&
    Number.isSafeInteger(sum.count) &&
    ["sum", "least", "most"].every((name) => Number.isFinite(sum[name]));
  return (
    isListOf(classes, (name) => typeof name === "string") &&
    isListOf(values, Number.isFinite) &&
    isListOf(class_counts, isCount) &&
    (value_sum === undefined || isSum(value_sum))
  );
}

function isHeaders(headers: unknown): headers is [string, string][] {
  return (
    Array.isArray(headers) &&
    headers.every(
      (pair) => Array.isArray(pair) && pair.length === 2 && pair.every((text) => typeof text === "string"),
    )
  );
}
