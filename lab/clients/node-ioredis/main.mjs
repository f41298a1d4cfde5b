// Uses the server as users of ioredis do.
import { readFileSync } from "node:fs";

import Redis from "ioredis";

import {
  DAY_SECONDS, FRESH, SCRIPT, check, expect, expectIncrex, expectPipelined, expectPooled, expectTransacted, finish, refused, restart, version, withPassword,
} from "../internal/node/checks.mjs";

const { REDIS_URL, REDIS_TLS_URL, REDIS_DB3_URL, REDIS_CA } = process.env;

// A client with an error listener, without which ioredis prints the errors that it recovers from.
function open(url, options) {
  return new Redis(url, options).on("error", () => {});
}

// once opens a client for one call, and fails at the first connection error.
async function once(url, options, run) {
  const client = open(url, { ...options, lazyConnect: true, retryStrategy: null });
  try {
    await new Promise((resolve, reject) => {
      client.once("error", reject);
      client.connect().then(resolve, () => {}); // the error event has the reason
    });
    return await run(client);
  } finally {
    client.disconnect();
  }
}

const throttle = (client, key, ...limit) => client.call("CL.THROTTLE", key, ...limit);
const fresh = async (client, key) => expect(await throttle(client, key, 15, 30, 60), FRESH);

// replies returns the replies of a pipeline or transaction, whose results are pairs of error and reply.
function replies(results) {
  return results.map(([error, reply]) => {
    if (error) throw error;
    return reply;
  });
}

async function tls() {
  await refused(once(REDIS_TLS_URL, {}, (c) => fresh(c, "tls")), /unable to verify|self-signed/);
  await once(REDIS_TLS_URL, { tls: { ca: readFileSync(REDIS_CA) } }, (c) => fresh(c, "tls"));
}

async function pipeline() {
  const batch = client.pipeline();
  for (let i = 0; i < 100; i++) batch.call("CL.THROTTLE", "pipeline", 49, 1, DAY_SECONDS);
  expectPipelined(replies(await batch.exec()));
}

async function transaction() {
  const multi = client.multi();
  for (let i = 0; i < 3; i++) multi.call("CL.THROTTLE", "transaction", 1, 1, DAY_SECONDS);
  expectTransacted(replies(await multi.exec()));
}

// watch expects a transaction to abort because another connection wrote its key, and then one to succeed.
async function watch() {
  const other = client.duplicate();
  const exec = () => client.multi().call("CL.THROTTLE", "watch", 15, 1, DAY_SECONDS).exec();
  try {
    await client.watch("watch");
    await throttle(other, "watch", 15, 1, DAY_SECONDS);
    expect(await exec(), null);
    await client.watch("watch");
    expect(replies(await exec())[0].slice(0, 3), [0, 16, 14]);
  } finally {
    other.disconnect();
  }
}

// evalsha sends EVALSHA, and EVAL if the server does not have the script, as ioredis's own commands do.
async function evalsha() {
  client.defineCommand("scriptThrottle", { numberOfKeys: 1, lua: SCRIPT });
  for (const key of ["evalsha:unknown", "evalsha:known"]) expect(await client.scriptThrottle(key, 15, 30, 60), FRESH);
}

// pool gives each worker its own connection, because ioredis has no pool.
async function pool() {
  const clients = Array.from({ length: 8 }, () => client.duplicate());
  try {
    await expectPooled((worker) => throttle(clients[worker], "pool", 99, 1, DAY_SECONDS));
  } finally {
    for (const c of clients) c.disconnect();
  }
}

// increx uses ioredis's method, to which the options are words, here in another order than the other clients'.
async function increx() {
  await expectIncrex(
    ({ by, float, lower, upper, saturate, expiry, enx }) => {
      const words = [...(enx ? ["ENX"] : []), ...(expiry ?? []), ...(saturate ? ["SATURATE"] : [])];
      if (upper !== undefined) words.push("UBOUND", upper);
      if (lower !== undefined) words.push("LBOUND", lower);
      if (by !== undefined) words.push("BYINT", by);
      if (float !== undefined) words.push("BYFLOAT", float);
      return client.increx("increx", ...words);
    },
    () => client.ttl("increx"),
  );
}

version(import.meta.url, "ioredis");
const client = open(REDIS_URL);
await check("url", () => client.ping());
await check("tls", tls);
await check("throttle", () => fresh(client, "throttle"));
await check("pipeline", pipeline);
await check("transaction", transaction);
await check("watch", watch);
await check("evalsha", evalsha);
await check("eval", async () => expect(await client.eval(SCRIPT, 1, "eval", 15, 30, 60), FRESH));
await check("pool", pool);
await check("wrong password", () => refused(once(withPassword(REDIS_URL, "not it"), {}, (c) => c.ping()), /WRONGPASS/));
await check("database", async () => {
  await fresh(client, "database");
  await once(REDIS_DB3_URL, {}, (c) => fresh(c, "database")); // where the key of the same name is separate
});
await check("increx", increx);
await check("reconnect", async () => {
  await restart();
  await fresh(client, "reconnect");
});
client.disconnect();
finish();
