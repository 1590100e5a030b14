/** A connection that another process has accepted is like one of Node's own server. */
import { once } from "node:events";
import { type AddressInfo, connect, createServer } from "node:net";
import { expect, it, vi } from "vitest";
import { Listener } from "../../../src/gateway/door/listener.ts";

it("its responses wait for no acknowledgement of the client", async () => {
  const listener = new Listener("parent", undefined, (_, response) => response.end("ok"));
  await listener.start();
  const server = createServer((socket) => {
    const noDelay = vi.spyOn(socket, "setNoDelay");
    listener.accept(socket);
    expect(noDelay).toHaveBeenCalledWith(true);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const client = connect((server.address() as AddressInfo).port, "127.0.0.1");
  client.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
  const [data] = (await once(client, "data")) as [Buffer];
  expect(data.toString()).toContain("200 OK");
  client.destroy();
  server.close();
});
