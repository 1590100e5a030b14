/** Streamed answers, read as a client would: pieces as they come, and how it ended. */
import { request } from "node:http";

export interface Streamed {
  status: number;
  type: string | undefined;
  text: string;
  /** When each piece came, in milliseconds since the request. */
  piecesMs: number[];
  /** False when the connection ended before the body did. */
  isWhole: boolean;
}

export function readStream(
  url: string,
  body: unknown,
  headers: Record<string, string> = {},
): Promise<Streamed> {
  const started = performance.now();
  return new Promise((resolve, reject) => {
    const sent = request(
      url,
      { method: "POST", headers: { "content-type": "application/json", ...headers } },
      (answer) => {
        const streamed: Streamed = {
          status: answer.statusCode!,
          type: answer.headers["content-type"],
          text: "",
          piecesMs: [],
          isWhole: false,
        };
        answer.setEncoding("utf8");
        answer.on("data", (text: string) => {
          streamed.text += text;
          streamed.piecesMs.push(performance.now() - started);
        });
        answer.on("error", () => {});
        answer.on("close", () => resolve({ ...streamed, isWhole: answer.complete }));
      },
    );
    sent.on("error", reject);
    sent.end(JSON.stringify(body));
  });
}
