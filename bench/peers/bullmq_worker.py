"""A BullMQ worker in Python, as a predictor needs one: no-op, `python bullmq_worker.py`, with REDIS_URL."""

import asyncio
import os

from bullmq import Worker

CONCURRENCY = 16


async def predict(job, token):
    return None


async def main():
    Worker("batches", predict, {"connection": os.environ["REDIS_URL"], "concurrency": CONCURRENCY})
    await asyncio.Event().wait()


asyncio.run(main())
