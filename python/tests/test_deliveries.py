"""Batches and parts of them, on their way through predict()."""

import json
import socket
import struct
import unittest

from quern_runtime import connection, protocol
from quern_runtime.deliveries import Deliveries
from quern_runtime.load_predictor import Predictor


class Note:
    def take_in_hand(self, *in_hand):
        pass

    def put_down(self):
        pass


class Connection:
    number = 1
    is_full = False

    def __init__(self):
        self.sent = []

    def send(self, message_type, message_id, body):
        self.sent.append((message_type, message_id, body))


class Recorder:
    def __init__(self):
        self.calls = []

    def predict(self, payload, batch_id):
        self.calls.append((payload, batch_id))
        return payload if payload != ["scalar"] else 1


def lease_part(batch_index, first_item, items):
    return struct.pack("<II", batch_index, first_item) + json.dumps(items).encode()


class Parts(unittest.TestCase):
    def setUp(self):
        self.recorder = Recorder()
        self.connection = Connection()
        self.faults = []
        self.deliveries = Deliveries(Note(), lambda: None, lambda fault, what: self.faults.append(fault))
        self.deliveries.welcome(self.connection)

    def run_part(self, items, needs_values=True):
        self.deliveries.set_up(Predictor(self.recorder), "job", True, needs_values)
        self.deliveries.take_part(self.connection, 1, lease_part(7, 40, items))
        self.deliveries.run_one()
        self.deliveries.acknowledge(self.connection)
        return dict((message_type, body) for message_type, _, body in self.connection.sent)

    def test_have_a_batch_id_of_their_own_and_rows_numbered_from_their_first_item(self):
        sent = self.run_part(["a", "b"])
        self.assertEqual(self.recorder.calls, [(["a", "b"], "job-7-40-41")])
        rows = [json.loads(line) for line in sent[protocol.OUTPUT].splitlines()]
        self.assertEqual([(row["batch_index"], row["item_index"]) for row in rows], [(7, 40), (7, 41)])

    def test_fail_at_the_stage_values_if_predict_does_not_return_one_value_an_item(self):
        self.run_part(["scalar"])
        self.assertEqual([fault["stage"] for fault in self.faults], ["values"])

    def test_are_refused_before_the_job_is_set_up_and_if_they_are_cut_off(self):
        with self.assertRaises(protocol.ProtocolError):
            self.deliveries.take_part(self.connection, 1, lease_part(7, 40, []))
        self.deliveries.set_up(Predictor(self.recorder), "job", True, True)
        with self.assertRaises(protocol.ProtocolError):
            self.deliveries.take_part(self.connection, 1, b"\0\0\0\0")


class Batches(unittest.TestCase):
    def test_wait_while_the_socket_has_not_taken_the_rows_of_the_one_before(self):
        ours, theirs = socket.socketpair()
        self.addCleanup(ours.close)
        self.addCleanup(theirs.close)
        ours.setblocking(False)
        controller = connection.Connection(ours, 1)
        deliveries = Deliveries(Note(), lambda: None, lambda fault, what: None)
        deliveries.welcome(controller)
        deliveries.set_up(Predictor(Recorder()), "job", True, False)
        for delivery in (1, 2):
            deliveries.take_part(controller, delivery, lease_part(delivery, 0, ["x" * 2**20]))
        deliveries.run_one()
        deliveries.acknowledge(controller)
        controller.flush()
        self.assertFalse(deliveries)
        while controller.wants_write:
            theirs.recv(2**20)
            controller.flush()
        self.assertTrue(deliveries)


if __name__ == "__main__":
    unittest.main()
