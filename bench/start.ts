/** The times that a user waits: start to ready, deploy to the first answer, four batches from submit to finished. */
import { eventually } from "../test/harness/eventually.ts";
import { ECHO, project } from "../test/harness/projects.ts";
import { TestServer } from "../test/harness/server.ts";
import { median, report } from "./measure.ts";

export async function benchStart(rounds: number): Promise<void> {
  const times: Record<string, number[]> = { ready: [], deploy: [], job: [] };
  for (let round = 0; round < rounds; round++) {
    const server = new TestServer();
    const timed = async (name: string, work: () => Promise<unknown>) => {
      const started = performance.now();
      await work();
      times[name]!.push((performance.now() - started) / 1000);
    };
    await timed("ready", () => server.start());
    await timed("deploy", async () => {
      server.deploy(project(ECHO), { wait: false });
      await eventually("the first answer", async () => (await server.post("/echo", 1)).status === 200);
    });
    await timed("job", async () => {
      const id = await server.submit("jobs", {
        workers: 2,
        item_list: { items: [1, 2, 3, 4], batch_size: 1 },
      });
      await server.ended("jobs", id);
    });
    await server.stop();
  }
  report("quern up to ready, seconds", median(times.ready!), "< 1", median(times.ready!) < 1);
  report(
    "deploy (command line) to the first answer, seconds",
    median(times.deploy!),
    "< 1",
    median(times.deploy!) < 1,
  );
  report("job of 4 batches, submit to finished, seconds", median(times.job!), "< 1", median(times.job!) < 1);
}
