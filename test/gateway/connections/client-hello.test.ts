/** When a TLS handshake may begin: what a client sent first has its whole ClientHello, in whatever records and parts. */
import { EventEmitter } from "node:events";
import type { Socket } from "node:net";
import { describe, expect, it } from "vitest";
import { CLIENT_HELLO_BYTES_MAX, CLIENT_HELLO_PARTS_MAX } from "../../../src/contracts/limits/requests.ts";
import { isHelloWhole, whenHelloIsWhole } from "../../../src/gateway/connections/client-hello.ts";

/** A message of type ClientHello, in records of so many bytes. */
function hello(bytes: number, ofRecord = 16_384): Buffer {
  const message = Buffer.concat([
    Buffer.from([1, bytes >> 16, (bytes >> 8) & 255, bytes & 255]),
    Buffer.alloc(bytes),
  ]);
  const records = [];
  for (let at = 0; at < message.length; at += ofRecord) {
    const payload = message.subarray(at, at + ofRecord);
    records.push(Buffer.from([22, 3, 1, payload.length >> 8, payload.length & 255]), payload);
  }
  return Buffer.concat(records);
}

describe("a ClientHello", () => {
  it.each([
    ["one record", hello(500)],
    ["records of three bytes", hello(500, 3)],
    ["records of one byte", hello(20, 1)],
  ])("in %s is whole with its last byte, and not before", (_, sent) => {
    for (let bytes = 0; bytes < sent.length; bytes++)
      expect(isHelloWhole(sent.subarray(0, bytes))).toBe(false);
    expect(isHelloWhole(sent)).toBe(true);
  });

  it.each([
    ["a request without TLS", Buffer.from("GET / HTTP/1.1\r\n\r\n")],
    ["an alert", Buffer.from([21, 3, 1, 0, 2, 2, 0])],
    ["an empty record", Buffer.from([22, 3, 1, 0, 0])],
    [
      "part of one, then another record",
      Buffer.concat([hello(500, 100).subarray(0, 105), Buffer.from([23])]),
    ],
  ])("is not waited for after %s, which TLS refuses", (_, sent) => {
    expect(isHelloWhole(sent)).toBe(true);
  });
});

describe("a connection before its ClientHello", () => {
  class FakeSocket extends EventEmitter {
    private received: Buffer[] = [];
    returned: Buffer | undefined;
    isDestroyed = false;
    read = () => this.received.shift() ?? null;
    unshift = (sent: Buffer) => (this.returned = sent);
    destroy = () => (this.isDestroyed = true);
    receive(...parts: Buffer[]): void {
      this.received = parts;
      this.emit("readable");
    }
  }
  let isWhole: boolean;
  function connect(): FakeSocket {
    isWhole = false;
    const socket = new FakeSocket();
    whenHelloIsWhole(socket as unknown as Socket, () => (isWhole = true));
    return socket;
  }

  it("is read until it is whole, and TLS gets all of it", () => {
    const socket = connect();
    const sent = hello(100);
    socket.receive(sent.subarray(0, 10));
    expect(isWhole).toBe(false);
    socket.receive(sent.subarray(10, 50), sent.subarray(50));
    expect(isWhole).toBe(true);
    expect(socket.returned).toEqual(sent);
    expect(socket.listenerCount("readable")).toBe(0);
  });

  it.each([
    [
      "sends more than a ClientHello may have",
      (socket: FakeSocket) => socket.receive(hello(CLIENT_HELLO_BYTES_MAX)),
    ],
    [
      "sends it in too many parts",
      (socket: FakeSocket) => {
        for (let part = 0; part <= CLIENT_HELLO_PARTS_MAX; part++)
          socket.receive(hello(100).subarray(part, part + 1));
      },
    ],
    ["ends", (socket: FakeSocket) => socket.emit("end")],
  ])("is closed if it %s", (_, act) => {
    const socket = connect();
    act(socket);
    expect(socket.isDestroyed).toBe(true);
    expect(isWhole).toBe(false);
  });
});
