"""What a worker says of its deliveries: rows first, then the ACKs that count them."""

import struct
import tracemalloc
import unittest

from quern_runtime import protocol
from quern_runtime.progress import Progress


class Sent:
    """A connection that keeps what it was given."""

    def __init__(self):
        self.messages = []

    def send(self, message_type, message_id, body):
        self.messages.append((message_type, message_id, body))

    def take(self):
        messages, self.messages = self.messages, []
        return messages


def succeed(progress, delivery, rows=0, output=None):
    if output is not None:
        progress.wrote(rows, output)
    progress.succeeded += 1
    progress.up_to = delivery


def head(body):
    return struct.unpack_from("<II", body)


class Acks(unittest.TestCase):
    def setUp(self):
        self.progress, self.sent = Progress(), Sent()

    def test_successes_and_failures_are_one_ack_without_output(self):
        succeed(self.progress, 4)
        self.progress.failed(5, b"{}")
        self.progress.send(self.sent)
        ((message_type, up_to, body),) = self.sent.take()
        self.assertEqual((message_type, up_to, head(body)), (protocol.ACK, 5, (1, 1)))
        self.progress.send(self.sent)
        self.assertEqual(self.sent.take(), [])

    def test_faults_that_need_more_than_a_frame_are_several_acks(self):
        for delivery in range(1, 6):
            self.progress.failed(delivery, b"x" * 100_000)
        self.progress.send(self.sent)
        self.assertEqual(
            [(up_to, head(body)) for _, up_to, body in self.sent.take()], [(2, (0, 2)), (4, (0, 2)), (5, (0, 1))]
        )

    def test_each_ack_is_one_frame_and_settles_exactly_its_own_deliveries(self):
        settled = []
        for delivery in range(1, 200):
            if delivery % 3:
                self.progress.succeeded += 1
                self.progress.up_to = delivery
            else:
                self.progress.failed(delivery, b"f" * 90_000)
        before = 0
        self.progress.send(self.sent)
        for _, up_to, body in self.sent.take():
            self.assertLessEqual(len(body), protocol.FRAME_BODY_BYTES_MAX)
            succeeded, failed, _ = protocol._ACK_HEAD.unpack_from(body)
            self.assertEqual(succeeded + failed, up_to - before)
            settled.append((succeeded, failed))
            before = up_to
        self.assertEqual(before, 199)
        self.assertEqual((sum(s for s, _ in settled), sum(f for _, f in settled)), (133, 66))

    def test_rows_leave_before_the_ack_that_counts_them(self):
        succeed(self.progress, 1, 2, b"a\nb\n")
        succeed(self.progress, 2, 1, b"c\n")
        self.progress.send(self.sent)
        output, ack = self.sent.take()
        self.assertEqual(output, (protocol.OUTPUT, 0, b"a\nb\nc\n"))
        self.assertEqual(ack[:2], (protocol.ACK, 2))
        self.assertEqual(struct.unpack_from("<IIII", ack[2], 16), (2, 4, 1, 2))

    def test_no_ack_leaves_while_rows_wait_for_credit(self):
        rows = b"x" * (protocol.OUTPUT_WINDOW_BYTES + 10)
        succeed(self.progress, 1, 1, rows)
        self.progress.send(self.sent)
        frames = self.sent.take()
        self.assertTrue(all(message_type == protocol.OUTPUT for message_type, _, _ in frames))
        self.assertTrue(all(len(body) <= protocol.FRAME_BODY_BYTES_MAX for _, _, body in frames))
        self.assertEqual(sum(len(body) for _, _, body in frames), protocol.OUTPUT_WINDOW_BYTES)
        self.assertTrue(self.progress.is_held)
        self.progress.grant(4)
        self.progress.send(self.sent)
        self.assertEqual(self.sent.take(), [(protocol.OUTPUT, 0, b"xxxx")])
        self.progress.grant(100)
        self.progress.send(self.sent)
        output, ack = self.sent.take()
        self.assertEqual((output[2], ack[:2]), (b"x" * 6, (protocol.ACK, 1)))
        self.assertFalse(self.progress.is_held)

    def test_a_long_row_that_leaves_in_pieces_is_copied_once_not_for_each_piece(self):
        window, pieces = protocol.OUTPUT_WINDOW_BYTES, 16
        rows = bytes(range(256)) * (window * pieces // 256)
        succeed(self.progress, 1, 1, b"before\n")
        succeed(self.progress, 2, 1, rows)
        succeed(self.progress, 3, 1, b"after\n")
        self.progress.send(self.sent)
        received = [body for _, _, body in self.sent.take()]
        peaks = []
        while self.progress.is_held:
            tracemalloc.start()
            self.progress.grant(window)
            self.progress.send(self.sent)
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
            received += [body for message_type, _, body in self.sent.take() if message_type == protocol.OUTPUT]
        self.assertEqual(b"".join(received), b"before\n" + rows + b"after\n")
        # A piece and what is joined for it, instead of all that waits.
        self.assertLess(max(peaks), 3 * window)

    def test_sizes_that_need_more_than_a_frame_are_several_acks(self):
        count = protocol.ACK_PARTS_BYTES_MAX // 8 + 3
        for delivery in range(1, count + 1):
            succeed(self.progress, delivery, 1, b"r")
        self.progress.send(self.sent)
        _, first, second = self.sent.take()
        self.assertEqual([head(first[2])[0], head(second[2])[0]], [count - 3, 3])
        self.assertEqual((first[1], second[1]), (count - 3, count))
        self.assertLessEqual(len(first[2]), protocol.FRAME_BODY_BYTES_MAX)


if __name__ == "__main__":
    unittest.main()
