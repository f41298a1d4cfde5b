// Uses Node's libraries for limits on a Redis as their users do, and prints what it saw.
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

import "reflect-metadata";
import fastifyRateLimit from "@fastify/rate-limit";
import { ThrottlerStorageRedisService } from "@nest-lab/throttler-storage-redis";
import { Reflector } from "@nestjs/core";
import { ThrottlerException, ThrottlerGuard } from "@nestjs/throttler";
import express from "express";
import { rateLimit } from "express-rate-limit";
import fastify from "fastify";
import Redis from "ioredis";
import { RedisStore } from "rate-limit-redis";
import { RateLimiterMemory, RateLimiterRedis, RateLimiterRes } from "rate-limiter-flexible";
import { createClient } from "redis";

const { REDIS_URL, REDIS_GONE_URL } = process.env;
const HOUR = 3600;
const POLLS = 3000; // of 20 ms: a minute, which hangs a part on no server

const word = (allowed) => (allowed ? "allowed" : "limited");

// open returns a client of ioredis; without a server its calls fail at once.
function open(url = REDIS_URL) {
  return new Redis(url, { maxRetriesPerRequest: 0, retryStrategy: () => null }).on("error", () => {});
}

// again makes calls until one is limited, and then until one is allowed: the window has passed.
async function again(saw, allowed) {
  for (const [want, text] of [[false, "limited"], [true, "allowed after the window"]]) {
    for (let i = 0; (await allowed()) !== want; i++) {
      if (i === POLLS) throw new Error(`not ${text}`);
      if (want) await sleep(20);
    }
    saw.push(text);
  }
}

// part prints what a part of a library's work saw. The part adds to it line by line, and names what to close.
async function part(library, name, run) {
  const saw = [];
  const close = [];
  let error;
  try {
    await run(saw, (item, end) => (close.push(() => end(item)), item));
  } catch (e) {
    error = e.message || String(e);
  }
  for (const end of close.reverse()) await end();
  const file = new URL(`node_modules/${library}/package.json`, import.meta.url);
  const { version } = JSON.parse(readFileSync(file, "utf8"));
  process.stdout.write(JSON.stringify({ library, version, part: name, saw, error }) + "\n");
}

// decide returns the answer of rate-limiter-flexible, which rejects with it if the call is limited.
async function decide(call) {
  try {
    return { allowed: true, ...(await call).toJSON() };
  } catch (e) {
    if (e instanceof RateLimiterRes) return { allowed: false, ...e.toJSON() };
    throw e;
  }
}

const consumed = async (call) => {
  const { allowed, consumedPoints, remainingPoints } = await decide(call);
  return `${word(allowed)}, consumed ${consumedPoints}, remaining ${remainingPoints}`;
};

async function flexible(storeClient, saw, more = {}) {
  const limited = (name, points, duration) => {
    const keyPrefix = name + Object.keys(more);
    return new RateLimiterRedis({ storeClient, keyPrefix, points, duration, ...more });
  };
  const limiter = limited("hour", 3, HOUR);
  for (let i = 0; i < 4; i++) saw.push(await consumed(limiter.consume("k")));
  saw.push(await consumed(limiter.get("k")), await consumed(limiter.reward("k", 2)));
  saw.push(await consumed(limiter.penalty("k")), await consumed(limiter.block("k", HOUR)));
  saw.push(String(await limiter.delete("k")), String(await limiter.get("k")));
  saw.push(await consumed(limiter.set("k", 2, HOUR)));
  const second = limited("second", 1, 1);
  await again(saw, async () => (await decide(second.consume("k"))).allowed);
}

await part("rate-limiter-flexible", "with ioredis", (saw, closing) =>
  flexible(closing(open(), (c) => c.disconnect()), saw));

await part("rate-limiter-flexible", "with node-redis", async (saw, closing) => {
  const client = closing(await createClient({ url: REDIS_URL }).connect(), (c) => c.destroy());
  await flexible(client, saw, { useRedisPackage: true });
});

await part("rate-limiter-flexible", "duration: 0", async (saw, closing) => {
  const storeClient = closing(open(), (c) => c.disconnect());
  const forever = new RateLimiterRedis({ storeClient, keyPrefix: "forever", points: 2, duration: 0 });
  for (let i = 0; i < 3; i++) saw.push(await consumed(forever.consume("k")));
});

await part("rate-limiter-flexible", "gone", async (saw, closing) => {
  const storeClient = closing(open(REDIS_GONE_URL), (c) => c.disconnect());
  const insuranceLimiter = new RateLimiterMemory({ points: 1, duration: HOUR });
  for (const more of [{}, { insuranceLimiter }]) {
    const limiter = new RateLimiterRedis({ storeClient, points: 3, duration: HOUR, ...more });
    saw.push(await decide(limiter.consume("k")).then((r) => word(r.allowed), () => "an error"));
  }
});

// served returns a function that sends a request to an Express app with this limiter.
async function served(limiter, closing, status = 200) {
  const app = express();
  app.use(limiter, (_, answer) => answer.sendStatus(status));
  app.use((error, request, answer, next) => answer.sendStatus(500)); // quietly
  const server = closing(app.listen(0, "127.0.0.1"), (s) => s.close());
  await once(server, "listening");
  return () => fetch(`http://127.0.0.1:${server.address().port}/`, { headers: { connection: "close" } });
}

function store(client, prefix) {
  return new RedisStore({ prefix, sendCommand: (...words) => client.call(...words) });
}

const headers = ["RateLimit-Limit", "RateLimit-Remaining", "X-RateLimit-Limit", "X-RateLimit-Remaining"];
const told = (status, get) => {
  const known = headers.filter((name) => (get(name) ?? null) !== null);
  return [status, ...known.map((name) => `${name} ${get(name)}`)].join(", ");
};

const allowedBy = (status) => {
  if (status === 200 || status === 429) return status === 200;
  throw new Error(`status ${status}`);
};

await part("rate-limit-redis", "under express-rate-limit", async (saw, closing) => {
  const client = closing(open(), (c) => c.disconnect());
  const options = { windowMs: HOUR * 1000, limit: 3, standardHeaders: "draft-6", legacyHeaders: false };
  const limiter = rateLimit({ ...options, store: store(client, "hour:") });
  const get = await served(limiter, closing);
  for (let i = 0; i < 4; i++) {
    const answer = await get();
    saw.push(told(answer.status, (name) => answer.headers.get(name)));
  }
  const kept = await limiter.getKey("127.0.0.1");
  saw.push(`${kept.totalHits} hits`);
  await limiter.resetKey("127.0.0.1");
  saw.push(String((await get()).status));
  // Requests that fail are not counted: the store decrements.
  const skipping = { limit: 1, skipFailedRequests: true, store: store(client, "failed:") };
  const failing = rateLimit({ ...options, ...skipping });
  const fail = await served(failing, closing, 404);
  for (let i = 0; i < 3; i++) {
    saw.push(String((await fail()).status));
    while ((await failing.getKey("127.0.0.1")).totalHits > 0) await sleep(5); // until it has decremented
  }
  const brief = rateLimit({ windowMs: 1000, limit: 1, store: store(client, "second:") });
  const second = await served(brief, closing);
  await again(saw, async () => allowedBy((await second()).status));
});

await part("rate-limit-redis", "gone", async (saw, closing) => {
  const client = closing(open(REDIS_GONE_URL), (c) => c.disconnect());
  for (const passOnStoreError of [false, true]) {
    const limiter = rateLimit({ passOnStoreError, store: store(client, "gone:") });
    saw.push(String((await (await served(limiter, closing))()).status));
  }
});

// injected returns a function that sends a request to a Fastify app with this plugin's options.
async function injected(options, closing) {
  const app = closing(fastify(), (a) => a.close());
  await app.register(fastifyRateLimit, { keyGenerator: () => "k", ...options });
  app.get("/", async () => "");
  return () => app.inject("/");
}

await part("@fastify/rate-limit", "plugin", async (saw, closing) => {
  const redis = closing(open(), (c) => c.disconnect());
  for (const more of [{}, { continueExceeding: true }, { exponentialBackoff: true }]) {
    const nameSpace = `hour-${Object.keys(more)}`;
    const get = await injected({ redis, max: 3, timeWindow: HOUR * 1000, nameSpace, ...more }, closing);
    for (let i = 0; i < 5; i++) {
      const answer = await get();
      saw.push(told(answer.statusCode, (name) => answer.headers[name.toLowerCase()]));
    }
  }
  const second = await injected({ redis, max: 1, timeWindow: 1000, nameSpace: "second" }, closing);
  await again(saw, async () => allowedBy((await second()).statusCode));
});

await part("@fastify/rate-limit", "gone", async (saw, closing) => {
  const redis = closing(open(REDIS_GONE_URL), (c) => c.disconnect());
  for (const skipOnError of [false, true]) {
    saw.push(String((await (await injected({ redis, skipOnError }, closing))()).statusCode));
  }
});

// guarded returns a function that asks Nest's guard whether a request passes.
async function guarded(client, name, throttler) {
  const storage = new ThrottlerStorageRedisService(client);
  const guard = new ThrottlerGuard({ throttlers: [{ name, ...throttler }] }, storage, new Reflector());
  await guard.onModuleInit();
  const answer = { headers: {}, header: (key, value) => (answer.headers[key.toLowerCase()] = value) };
  const http = { getRequest: () => ({ ip: "127.0.0.1", headers: {} }), getResponse: () => answer };
  const handler = () => {};
  const context = { getHandler: () => handler, getClass: () => Object, switchToHttp: () => http };
  return async () => {
    const allowed = await guard.canActivate(context).catch((e) => {
      if (e instanceof ThrottlerException) return false;
      throw e;
    });
    return { allowed, get: (key) => answer.headers[`${key}-${name}`.toLowerCase()] };
  };
}

await part("@nest-lab/throttler-storage-redis", "guard", async (saw, closing) => {
  const client = closing(open(), (c) => c.disconnect());
  const ask = await guarded(client, "hour", { ttl: HOUR * 1000, limit: 3 });
  for (let i = 0; i < 5; i++) {
    const { allowed, get } = await ask();
    saw.push(told(word(allowed), get));
  }
  const second = await guarded(client, "second", { ttl: 1000, limit: 1, blockDuration: 1000 });
  await again(saw, async () => (await second()).allowed);
});

await part("@nest-lab/throttler-storage-redis", "gone", async (saw, closing) => {
  const client = closing(open(REDIS_GONE_URL), (c) => c.disconnect());
  const ask = await guarded(client, "hour", { ttl: HOUR * 1000, limit: 3 });
  saw.push(await ask().then((r) => word(r.allowed), () => "an error"));
});
