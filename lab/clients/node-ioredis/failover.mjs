// Calls the leader of a pair through ioredis, which follows Sentinel. See lab/clients/README.md.
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { setTimeout } from "node:timers/promises";

import Redis from "ioredis";

const { SENTINELS, NAME, PASSWORD, CALL, INTERVAL_MS } = process.env;

function open(sentinels, name, password) {
  // sentinel: begin
  const client = new Redis({
    sentinels, // [{ host: "10.0.0.1", port: 26379 }, { host: "10.0.0.2", port: 26379 }, ...]
    name, // "mymaster"
    password,
    commandTimeout: 3000,
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    enableOfflineQueue: false, // without a connection, a call fails at once
    retryStrategy: (times) => Math.min(times * 50, 200),
    reconnectOnError: (error) => error.message.startsWith("READONLY"),
  });
  client.on("error", () => {}); // it connects again by itself
  // sentinel: end
  return client;
}

// allowed reports whether a call is. Practically nothing leaks: a burst of 200,000, and five hours a unit.
async function allowed(key) {
  if (CALL === "incr") return (await client.incr(key)) > 0;
  return (await client.call("CL.THROTTLE", key, 199_999, 1, 18_000))[0] === 0;
}

// kind says what is known of a call that failed: refused and unsent ones were not charged.
function kind(error) {
  if (/^(READONLY|LOADING|MASTERDOWN|NOREPLICAS)/.test(error.message)) return "refused";
  return error.message.startsWith("Stream isn't writeable") ? "unsent" : "unknown";
}

const sentinels = SENTINELS.split(",").map((a) => ({ host: a.split(":")[0], port: Number(a.split(":")[1]) }));
const client = open(sentinels, NAME, PASSWORD);
const { version } = createRequire(import.meta.url)("ioredis/package.json");

const lines = createInterface({ input: process.stdin });
const keys = [];
let ended = false;
lines.on("line", (line) => keys.push(line));
lines.on("close", () => { ended = true; });
const more = async () => {
  while (keys.length === 0 && !ended) await setTimeout(1);
  return keys.shift();
};

let last = performance.now(); // success
// A section is the time between two lines of standard input.
for (let key = await more(); key !== undefined;) {
  const counts = { ok: 0, allowed: 0, refused: 0, unsent: 0, unknown: 0 };
  const section = { library: "ioredis", version, key, ...counts, errors: {} };
  let longest = 0;
  while (keys.length === 0 && !ended) {
    try {
      if (await allowed(key)) section.allowed++;
      section.ok++;
      longest = Math.max(longest, performance.now() - last);
      last = performance.now();
    } catch (error) {
      section[kind(error)]++;
      const text = error.message.slice(0, 100);
      section.errors[text] = (section.errors[text] ?? 0) + 1;
    }
    await setTimeout(Number(INTERVAL_MS));
  }
  key = keys.shift();
  section.since_ms = performance.now() - last;
  section.longest_ms = Math.max(longest, section.since_ms);
  if (key !== undefined) console.log(JSON.stringify(section));
}
client.disconnect();
