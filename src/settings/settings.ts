/** The table of all settings: those of the server, and those of the command line. */
import { SERVER_SETTINGS } from "./server-settings.ts";

/** Settings of the command line. */
const CLIENT_SETTINGS = {
  host: {
    env: "QUERN_HOST",
    option: "",
    default: "http://127.0.0.1:8420",
    unit: "URL",
    help: "the server that the command line talks to",
  },
  apiKey: {
    env: "QUERN_API_KEY",
    option: "",
    default: "",
    unit: "key",
    help: "the key that the command line sends; without it, the admin token of the data directory",
  },
} as const;

export const SETTINGS = { ...SERVER_SETTINGS, ...CLIENT_SETTINGS };

export type SettingName = keyof typeof SETTINGS;
