/**
 * A load generator: `node load.mjs URL CONNECTIONS SECONDS [REQUESTS_PER_SECOND]`. Raw sockets with keep-alive, one
 * request after another on each; prints {requests, seconds, errors, p50_ms, p99_ms} as JSON. Cheap on purpose: it shares
 * the machine with what it measures.
 */
import { connect } from "node:net";

const [, , url, connections, seconds, rate] = process.argv;
const { hostname, port, pathname } = new URL(url);
const body = '{"sepal_length": 5.2, "sepal_width": 3.6, "petal_length": 1.4, "petal_width": 0.3}';
const request = Buffer.from(
  `POST ${pathname} HTTP/1.1\r\nHost: ${hostname}:${port}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
);
const end = performance.now() + Number(seconds) * 1000;
const pauseMs = rate === undefined ? 0 : (Number(connections) / Number(rate)) * 1000;
const latencies = [];
let errors = 0;

function run() {
  return new Promise((resolve) => {
    const socket = connect({ host: hostname, port: Number(port), noDelay: true });
    let sentMs = 0;
    const send = () => {
      sentMs = performance.now();
      if (sentMs >= end) socket.end();
      else socket.write(request);
    };
    socket.on("connect", send);
    socket.on("data", (data) => {
      // Answers are smaller than a packet: one read is one answer.
      latencies.push(performance.now() - sentMs);
      if (data.toString("latin1", 9, 12) !== "200") errors++;
      const wait = pauseMs - (performance.now() - sentMs);
      if (wait > 1) setTimeout(send, wait);
      else send();
    });
    socket.on("error", () => errors++).on("close", resolve);
  });
}

const started = performance.now();
await Promise.all(Array.from({ length: Number(connections) }, run));
latencies.sort((a, b) => a - b);
const at = (share) => latencies[Math.floor(latencies.length * share)] ?? 0;
console.log(
  JSON.stringify({
    requests: latencies.length,
    seconds: (performance.now() - started) / 1000,
    errors,
    p50_ms: at(0.5),
    p99_ms: at(0.99),
  }),
);
