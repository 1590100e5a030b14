"""A TLS 1.3 client that does what Node's and Python's own do not. `tls_client.py PORT ACT [N]`, where ACT is

updates  changes its key N times, sends a request, and prints how many changes were sent
bytes    sends a request of N bytes, each in a record of its own, and prints N
reset    begins a body, waits for a line on its input, and resets the connection

Then it prints the first line of the response. It calls the library that Python's own module has loaded.
"""

import _ssl
import ctypes
import socket
import struct
import sys

TLS = ctypes.CDLL(getattr(_ssl, "__file__", None))
for name in ("TLS_client_method", "SSL_CTX_new", "SSL_new"):
    getattr(TLS, name).restype = ctypes.c_void_p
RESET_AT_CLOSE = struct.pack("ii", 1, 0)


class Client:
    """A connection with a finished handshake."""

    def __init__(self, port: int) -> None:
        self.connection = socket.create_connection(("127.0.0.1", port))
        context = ctypes.c_void_p(TLS.SSL_CTX_new(ctypes.c_void_p(TLS.TLS_client_method())))
        self.tls = ctypes.c_void_p(TLS.SSL_new(context))
        TLS.SSL_set_fd(self.tls, self.connection.fileno())
        if TLS.SSL_connect(self.tls) != 1:
            raise SystemExit("no handshake")

    def change_key(self) -> bool:
        """Whether the change was sent."""
        return TLS.SSL_key_update(self.tls, 0) == 1 and TLS.SSL_do_handshake(self.tls) == 1

    def write(self, record: bytes) -> None:
        TLS.SSL_write(self.tls, record, len(record))

    def response(self) -> str:
        """The first line; empty if the server has closed the connection."""
        response = ctypes.create_string_buffer(1024)
        length = TLS.SSL_read(self.tls, response, len(response))
        return response.raw[: max(length, 0)].split(b"\r\n")[0].decode()


def request(size: int = 0) -> bytes:
    begin, end = b"GET /", b" HTTP/1.1\r\nhost: x\r\n\r\n"
    return begin + b"a" * (size - len(begin) - len(end)) + end


def main(port: int, act: str, times: int = 0) -> None:
    client = Client(port)
    sent = times
    if act == "updates":
        sent = next((done for done in range(times) if not client.change_key()), times)
        client.write(request())
    elif act == "bytes":
        for byte in request(times):
            client.write(bytes([byte]))
    else:
        client.write(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\nab")
        sys.stdin.readline()
        client.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_AT_CLOSE)
        return client.connection.close()
    print(sent, client.response())


main(int(sys.argv[1]), sys.argv[2], *map(int, sys.argv[3:]))
