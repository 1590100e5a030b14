/**
 * Answers that are known to be whole. `fetch` takes what came before a connection was cut for all of it where the connection was
 * to be closed behind the answer, also when a last chunk is missing (RFC 9112, section 8); node:http tells.
 */
import { request } from "node:http";

export interface WholeAnswer {
  status: number;
  text: string;
}

/** Over a connection of its own. Undefined where there is no answer, or not all of it. A body is posted as JSON. */
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
