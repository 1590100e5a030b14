/** A real server that speaks SQS, with a standard and a FIFO queue; `node scripts/servers.mjs` installs it. */
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Message } from "@aws-sdk/client-sqs";
import { eventually } from "./eventually.ts";
import { freePort } from "./faulty-proxy.ts";
import { root } from "./server.ts";

const JARS = join(root, ".servers", "elasticmq");
export const isSqsInstalled = existsSync(JARS);

export interface TestSqs {
  env: Record<string, string>;
  arn: (queue: string) => string;
  /** Suspends and resumes the process: connections stay open, and nothing is answered. */
  freeze(): void;
  thaw(): void;
  /** Receives and deletes all messages of a queue. */
  take(queue: string): Promise<Message[]>;
  stop(): Promise<void>;
}

export async function startSqs(): Promise<TestSqs> {
  const directory = mkdtempSync(join(tmpdir(), "quern-sqs-"));
  const port = await freePort();
  const config = join(directory, "elasticmq.conf");
  writeFileSync(
    config,
    `include classpath("application.conf")
node-address { protocol = http, host = "127.0.0.1", port = ${port}, context-path = "" }
rest-sqs { enabled = true, bind-port = ${port}, bind-hostname = "127.0.0.1", sqs-limits = strict }
rest-stats { enabled = false }
queues { letters {}, "letters.fifo" { fifo = true, contentBasedDeduplication = false } }
`,
  );
  const args = ["-Xmx256m", `-Dconfig.file=${config}`, "-cp", join(JARS, "*"), "org.elasticmq.server.Main"];
  const child = spawn("java", args, { stdio: "ignore" });
  const url = `http://127.0.0.1:${port}`;
  await eventually(
    "ElasticMQ answers",
    () =>
      fetch(url)
        .then(() => true)
        .catch(() => false),
    60_000,
  );
  const env = {
    AWS_ENDPOINT_URL_SQS: url,
    AWS_ACCESS_KEY_ID: "x",
    AWS_SECRET_ACCESS_KEY: "x",
    AWS_EC2_METADATA_DISABLED: "true",
  };
  const { SQSClient, ReceiveMessageCommand, DeleteMessageCommand } = await import("@aws-sdk/client-sqs");
  const credentials = { accessKeyId: "x", secretAccessKey: "x" };
  const client = new SQSClient({ endpoint: url, region: "us-east-1", credentials });
  return {
    env,
    arn: (queue) => `arn:aws:sqs:us-east-1:000000000000:${queue}`,
    freeze: () => void child.kill("SIGSTOP"),
    thaw: () => void child.kill("SIGCONT"),
    take: async (queue) => {
      const QueueUrl = `${url}/000000000000/${queue}`;
      const all: Message[] = [];
      for (;;) {
        const { Messages = [] } = await client.send(
          new ReceiveMessageCommand({
            QueueUrl,
            MaxNumberOfMessages: 10,
            MessageAttributeNames: ["All"],
            WaitTimeSeconds: 1,
          }),
        );
        if (Messages.length === 0) return all;
        for (const { ReceiptHandle } of Messages)
          await client.send(new DeleteMessageCommand({ QueueUrl, ReceiptHandle }));
        all.push(...Messages);
      }
    },
    stop: async () => {
      const exited = new Promise((resolve) => child.once("exit", resolve));
      child.kill("SIGKILL");
      await exited;
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
