/** A proxy before a server whose overview changes all the time: an hour of updates in seconds. */
import { createServer, request, type Server } from "node:http";

interface Api {
  name: string;
  requests_per_s: number;
  recent: number[];
}

/** APIs that each update changes. */
const CHANGED = 100;

/** `updates`: how many follow the real overview, one each `everyMs`. */
export function busyStream(
  target: string,
  updates: number,
  everyMs: number,
): { server: Server; ended: Promise<void> } {
  let end = () => {};
  const ended = new Promise<void>((resolve) => (end = resolve));
  const { port } = new URL(target);
  const server = createServer((asked, answer) => {
    const isStream = asked.url === "/-/overview" && asked.headers.accept === "text/event-stream";
    const headers = isStream ? { ...asked.headers, accept: "application/json" } : asked.headers;
    const sent = request({ port, method: asked.method, path: asked.url, headers }, async (got) => {
      if (!isStream) {
        answer.writeHead(got.statusCode!, got.headers);
        got.pipe(answer);
        return;
      }
      let text = "";
      for await (const chunk of got.setEncoding("utf8")) text += chunk;
      answer.writeHead(200, { "content-type": "text/event-stream" });
      answer.write(`event: overview\ndata: ${text}\n\n`);
      const { apis } = JSON.parse(text) as { apis: Api[] };
      for (let n = 0; n < updates && !answer.destroyed; n++) {
        answer.write(`event: changes\ndata: ${JSON.stringify(changes(apis, n))}\n\n`);
        await new Promise((resolve) => setTimeout(resolve, everyMs));
      }
      end();
    });
    sent.on("error", () => answer.destroy());
    asked.pipe(sent);
  });
  return { server, ended };
}

function changes(apis: readonly Api[], n: number) {
  const changed = Array.from({ length: CHANGED }, (_, at) => apis[(n * CHANGED + at) % apis.length]!);
  return {
    time: new Date(Date.now() + n * 1000).toISOString(),
    apis: changed.map((api) => ({
      ...api,
      requests_per_s: (n * 7) % 100,
      recent: api.recent.map((_, at) => (n + at) % 60),
    })),
  };
}
