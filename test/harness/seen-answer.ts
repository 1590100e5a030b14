/** What a caller sees of an answer, to compare answers with each other. */
import { request as httpRequest } from "node:http";

export interface Asked {
  method?: string;
  headers?: Record<string, string>;
  body?: string;
}

/** Everything that the caller sees of an answer, without values that differ in every answer; the path is replaced. */
export function seenAnswer(address: string, { method = "GET", headers = {}, body }: Asked): Promise<unknown> {
  return new Promise<unknown>((resolve, reject) => {
    // As from another machine.
    const outside = { "x-forwarded-for": "203.0.113.7", "x-request-id": "same", ...headers };
    const ask = httpRequest(address, { method, headers: outside, agent: false }, (answer) => {
      let text = "";
      answer.setEncoding("utf8").on("data", (part: string) => (text += part));
      answer.on("end", () => {
        ask.destroy();
        const { date: _, ...rest } = answer.headers;
        resolve({
          status: answer.statusCode,
          names: answer.rawHeaders.filter((_, i) => i % 2 === 0),
          rest,
          text,
        });
      });
    });
    let isContinued = false;
    ask.on("continue", () => {
      isContinued = true;
      ask.end(body);
    });
    ask.on("error", (error) => (isContinued ? resolve("continued") : reject(error)));
    // Not all of them send what they announce.
    if (headers["content-length"] === undefined) ask.end(body);
    else ask.flushHeaders();
  });
}
