"""server_side_batching: when waiting requests become one batch, purely. Time is the caller's, in seconds."""

from collections import deque


class Batching:
    """Full, or the oldest has waited `interval_s`, or a single one on an idle worker, which gains nothing by waiting."""

    def __init__(self, max_size, interval_s):
        self.max_size = max_size
        self._interval_s = interval_s
        self._waiting = deque()

    def __len__(self):
        return len(self._waiting)

    def add(self, request, now):
        self._waiting.append((now, request))

    def remove(self, request):
        """False when it is not waiting."""
        for entry in self._waiting:
            if entry[1] is request:
                self._waiting.remove(entry)
                return True
        return False

    def take(self, now, is_idle):
        """The next batch as a list, or None while it is to wait."""
        waiting = len(self._waiting)
        if waiting == 0:
            return None
        if waiting < self.max_size and not (is_idle and waiting == 1) and self.due_in(now) > 0:
            return None
        return [self._waiting.popleft()[1] for _ in range(min(waiting, self.max_size))]

    def due_in(self, now):
        """Seconds until the oldest has waited long enough; a second where nobody waits."""
        return self._waiting[0][0] + self._interval_s - now if self._waiting else 1.0
