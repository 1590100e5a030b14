/** The bare limit of a real-time API: node:http that parses JSON and answers JSON, nothing else. Prints its port. */
import { createServer } from "node:http";

createServer((request, response) => {
  const chunks = [];
  request.on("data", (chunk) => chunks.push(chunk));
  request.on("end", () => {
    const flower = JSON.parse(Buffer.concat(chunks).toString());
    const body = JSON.stringify(flower.petal_length > 2 ? "versicolor" : "setosa");
    response.writeHead(200, {
      "content-type": "application/json",
      "content-length": Buffer.byteLength(body),
    });
    response.end(body);
  });
}).listen(0, "127.0.0.1", function () {
  console.log(this.address().port);
});
