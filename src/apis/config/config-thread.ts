/** The thread that parses long configurations (read-config.ts). */
import { serveThread } from "../../engine/side-work.ts";
import { type ConfigTask, readLocated } from "./read-config.ts";

serveThread(({ text, file }: ConfigTask) => readLocated(text, file));
