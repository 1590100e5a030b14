"""When a replica asks for its successor."""

from __future__ import annotations

import unittest

from quern_runtime import wear


class WearTest(unittest.TestCase):
    def served(self, max_requests: int, per_second: float, start_s: float, requests: int) -> list[int]:
        """What it asked with, after so many requests at this rate; it took `start_s` seconds to start."""
        now = [wear.born + start_s]
        asked: list[int] = []
        counted = wear.Wear(max_requests, asked.append, lambda: now[0])
        for _ in range(requests):
            now[0] += 1 / per_second
            counted.count()
        return asked

    def test_a_successor_is_asked_for_so_early_that_it_is_ready_in_time(self) -> None:
        # 2.3 s before the last one: 230 requests.
        first, last = self.served(1_000, 100, 1, 1_000)
        self.assertEqual(last, 0)
        self.assertTrue(200 <= first <= 230, first)

    def test_at_a_low_rate_it_is_asked_for_with_the_last_request(self) -> None:
        self.assertEqual(self.served(100, 1, 0.1, 100), [0])

    def test_at_a_high_rate_it_is_asked_for_at_once(self) -> None:
        first, last = self.served(1_000, 10_000, 1, 1_000)
        self.assertTrue(first >= 980, first)
        self.assertEqual(last, 0)

    def test_nothing_is_asked_for_before_and_after(self) -> None:
        self.assertEqual(self.served(1_000, 100, 1, 500), [])
        self.assertEqual(self.served(10, 1, 0.1, 5_000), [0])
        self.assertEqual(self.served(1, 1, 0.1, 3), [0])


if __name__ == "__main__":
    unittest.main()
