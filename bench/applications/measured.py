"""Runs a command to its end and prints its CPU seconds and the most memory that one of its processes had resident, in MiB."""

import json
import resource
import subprocess
import sys
import time

started = time.monotonic()
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
usage = resource.getrusage(resource.RUSAGE_CHILDREN)
figures = {
    "cpu_s": usage.ru_utime + usage.ru_stime,
    "wall_s": time.monotonic() - started,
    "rss_mib": usage.ru_maxrss / 1024,
}
print(json.dumps(figures))
