// Uses the server as users of node-redis do.
import { readFileSync } from "node:fs";

import { WatchError, createClient, createClientPool, defineScript } from "redis";

import {
  DAY_SECONDS, FRESH, SCRIPT, check, expect, expectIncrex, expectPipelined, expectPooled, expectTransacted, finish, refused, restart, version, withPassword,
} from "../internal/node/checks.mjs";

const { REDIS_URL, REDIS_TLS_URL, REDIS_DB3_URL, REDIS_CA } = process.env;

// evalsha's script: node-redis sends EVALSHA, and EVAL if the server does not have it.
const scriptThrottle = defineScript({
  SCRIPT,
  NUMBER_OF_KEYS: 1,
  parseCommand(parser, key, ...limit) {
    parser.pushKey(key);
    parser.push(...limit);
  },
  transformReply: undefined,
});

// A client with an error listener, without which an error ends the process.
const open = (options) => createClient(options).on("error", () => {});

// once opens a client for one call, and fails at the first connection error.
async function once(options, run) {
  const client = open({ ...options, socket: { reconnectStrategy: false, ...options.socket } });
  try {
    await client.connect();
    return await run(client);
  } finally {
    if (client.isOpen) client.destroy();
  }
}

const throttle = (client, key, ...limit) => client.sendCommand(["CL.THROTTLE", key, ...limit]);
const fresh = async (client, key) => expect(await throttle(client, key, "15", "30", "60"), FRESH);

async function tls() {
  await refused(once({ url: REDIS_TLS_URL }, (c) => fresh(c, "tls")), /unable to verify|self-signed/);
  await once({ url: REDIS_TLS_URL, socket: { tls: true, ca: readFileSync(REDIS_CA) } }, (c) => fresh(c, "tls"));
}

async function pipeline() {
  const batch = client.multi();
  for (let i = 0; i < 100; i++) batch.addCommand(["CL.THROTTLE", "pipeline", "49", "1", DAY_SECONDS]);
  expectPipelined(await batch.execAsPipeline());
}

async function transaction() {
  const multi = client.multi();
  for (let i = 0; i < 3; i++) multi.addCommand(["CL.THROTTLE", "transaction", "1", "1", DAY_SECONDS]);
  expectTransacted(await multi.exec());
}

// watch expects a transaction to abort because another connection wrote its key, and then one to succeed.
async function watch() {
  await once({ url: REDIS_URL }, async (own) => {
    const exec = () => own.multi().addCommand(["CL.THROTTLE", "watch", "15", "1", DAY_SECONDS]).exec();
    await own.watch("watch");
    await throttle(client, "watch", "15", "1", DAY_SECONDS);
    const error = await exec().catch((e) => e);
    expect(error instanceof WatchError, true);
    await own.watch("watch");
    expect((await exec())[0].slice(0, 3), [0, 16, 14]);
  });
}

async function evalsha() {
  for (const key of ["evalsha:unknown", "evalsha:known"]) {
    expect(await client.scriptThrottle(key, "15", "30", "60"), FRESH);
  }
}

async function pool() {
  const clients = createClientPool({ url: REDIS_URL }, { minimum: 8, maximum: 8 }).on("error", () => {});
  await clients.connect();
  try {
    await expectPooled(() => clients.sendCommand(["CL.THROTTLE", "pool", "99", "1", DAY_SECONDS]));
  } finally {
    clients.destroy();
  }
}

// cache expects reads of a client with a cache to return what another writes, or connect to fail.
async function cache() {
  try {
    await once({ url: REDIS_URL, RESP: 3, clientSideCache: {} }, async (caching) => {
      for (let i = 0; i < 3; i++) {
        const want = String(await client.incr("cache"));
        let got = await caching.get("cache");
        for (let tries = 1; got !== want && tries < 10_000; tries++) {
          await client.ping(); // gives Redis's messages time
          got = await caching.get("cache");
        }
        expect(got, want);
      }
    });
  } catch (e) {
    if (!/clientSideCache/.test(e.message)) throw e;
  }
}

// increx uses node-redis's methods for integers and for floating-point numbers.
async function increx() {
  await expectIncrex(
    ({ by, float, lower, upper, saturate, expiry, enx }) => {
      const options = { by, lowerBound: lower, upperBound: upper, saturate };
      if (expiry) options.expiration = { type: expiry[0], value: expiry[1], ENX: enx };
      return float === undefined ? client.increx("increx", options) : client.incrExByFloat("increx", float, options);
    },
    () => client.ttl("increx"),
  );
}

version(import.meta.url, "redis");
const client = open({ url: REDIS_URL, scripts: { scriptThrottle } });
await check("url", async () => {
  await client.connect();
  await client.ping();
});
await check("tls", tls);
await check("throttle", () => fresh(client, "throttle"));
await check("pipeline", pipeline);
await check("transaction", transaction);
await check("watch", watch);
await check("evalsha", evalsha);
await check("eval", async () => {
  expect(await client.eval(SCRIPT, { keys: ["eval"], arguments: ["15", "30", "60"] }), FRESH);
});
await check("pool", pool);
await check("wrong password", () => {
  return refused(once({ url: withPassword(REDIS_URL, "not it") }, (c) => c.ping()), /WRONGPASS/);
});
await check("database", async () => {
  await fresh(client, "database");
  await once({ url: REDIS_DB3_URL }, (c) => fresh(c, "database")); // where the key of the same name is separate
});
await check("cache", cache);
await check("increx", increx);
await check("reconnect", async () => {
  await restart();
  await fresh(client, "reconnect");
});
if (client.isOpen) client.destroy();
finish();
