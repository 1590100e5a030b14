/**
 * Reads answers that are certainly complete. If a connection is to be closed after an answer, `fetch` takes a truncated
 * body for a complete one, even if the last chunk is missing (RFC 9112, section 8). node:http reports it.
 */
import { request } from "node:http";

export interface WholeAnswer {
  status: number;
  text: string;
}

/** Over a connection of its own. Undefined if there is no complete answer. A body is posted as JSON. */
export function wholeAnswer(
  url: string,
  headers: Record<string, string>,
  body?: string,
): Promise<WholeAnswer | undefined> {
  return new Promise((resolve) => {
    const type = body === undefined ? {} : { "content-type": "application/json" };
    const method = body === undefined ? "GET" : "POST";
    const asked = request(url, { method, agent: false, headers: { ...headers, ...type } }, (answer) => {
      const chunks: Buffer[] = [];
      answer.on("data", (chunk: Buffer) => chunks.push(chunk));
      answer.on("error", () => resolve(undefined));
      answer.on("close", () =>
        resolve(
          answer.complete
            ? { status: answer.statusCode!, text: Buffer.concat(chunks).toString("utf8") }
            : undefined,
        ),
      );
    });
    asked.on("error", () => resolve(undefined));
    asked.end(body);
  });
}
