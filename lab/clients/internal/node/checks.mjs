// Shared by the Node programs: reports to the runner, requests to restart the server, and comparison of replies.
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { isDeepStrictEqual } from "node:util";

export const SCRIPT = "return redis.call('cl.throttle', KEYS[1], ARGV[1], ARGV[2], ARGV[3])";
export const DAY_SECONDS = "86400"; // a period so long that no unit leaks during a check
export const FRESH = [0, 16, 15, -1, 2]; // the reply to 15 30 60 for a new key

const lines = createInterface({ input: process.stdin });

function say(line) {
  process.stdout.write(JSON.stringify(line) + "\n");
}

// version returns the installed version of a package.
export function version(programUrl, name) {
  const file = new URL(`node_modules/${name}/package.json`, programUrl);
  say({ version: JSON.parse(readFileSync(file, "utf8")).version });
}

export async function check(name, run) {
  try {
    await run();
    say({ check: name, ok: true });
  } catch (e) {
    process.exitCode = 1;
    say({ check: name, error: String(e) });
  }
}

export async function restart() {
  const answer = once(lines, "line");
  process.stdout.write("RESTART\n");
  expect((await answer)[0], "restarted");
}

// finish lets the program exit: it stops reading from the runner.
export function finish() {
  lines.close();
}

export function expect(got, want) {
  if (!isDeepStrictEqual(got, want)) throw new Error(`${JSON.stringify(got)}, want ${JSON.stringify(want)}`);
}

// expectPipelined expects the replies to 100 calls of 49 1 DAY_SECONDS: the first 50 are allowed.
export function expectPipelined(replies) {
  expect(
    replies.map((r) => r.slice(0, 3)),
    Array.from({ length: 100 }, (_, i) => [i < 50 ? 0 : 1, 50, Math.max(49 - i, 0)]),
  );
}

// expectTransacted expects the replies to three calls of 1 1 DAY_SECONDS: the first two are allowed.
export function expectTransacted(replies) {
  expect(replies.map((r) => r.slice(0, 3)), [[0, 2, 1], [0, 2, 0], [1, 2, 0]]);
}

// expectPooled has eight workers make 100 calls each of 99 1 DAY_SECONDS on one key, and expects 100 to be allowed.
export async function expectPooled(call) {
  let passed = 0;
  await Promise.all(
    Array.from({ length: 8 }, async (_, worker) => {
      for (let i = 0; i < 100; i++) {
        const [limited] = await call(worker);
        passed += 1 - limited;
      }
    }),
  );
  expect(passed, 100);
}

// expectIncrex makes calls of INCREX with each option on a new key, and expects the value, what was added, and how many
// seconds the key then lives.
export async function expectIncrex(call, ttl) {
  const now = Date.now();
  const seconds = Math.floor(now / 1000);
  const [kept, forever] = [1000, -1];
  for (const [options, value, added, over, mostLeft] of [
    [{}, 1, 1, -2, forever],
    [{ by: 5, lower: 0, upper: 10 }, 6, 5, -2, forever],
    [{ by: 5, upper: 10, expiry: ["EX", kept] }, 6, 0, -2, forever], // declined, with its expiry
    [{ by: 5, upper: 10, saturate: true, expiry: ["EX", kept] }, 10, 4, 0, kept],
    [{ by: -50, lower: 2, saturate: true, expiry: ["PX", 9_000_000], enx: true }, 2, -8, 0, kept],
    [{ by: 1, expiry: ["EXAT", seconds + 20_000] }, 3, 1, kept, 20_000],
    [{ by: 1, expiry: ["PXAT", now + 40_000_000] }, 4, 1, 20_000, 40_000],
    [{ by: 1, expiry: ["PERSIST"] }, 5, 1, -2, forever],
    [{ by: 1, expiry: ["EX", kept], enx: true }, 6, 1, 0, kept],
    [{ float: 0.5, lower: 0, upper: 7.5 }, 6.5, 0.5, 0, kept],
    [{ float: 10, upper: 7.5 }, 6.5, 0, 0, kept],
    [{ float: 10, upper: 7.5, saturate: true, expiry: ["PX", 9_000_000] }, 7.5, 1, kept, 9_000],
  ]) {
    expect((await call(options)).map(Number), [value, added]);
    const left = await ttl();
    if (left <= over || left > mostLeft) throw new Error(`${left} s, want ${over} to ${mostLeft}, after ${JSON.stringify(options)}`);
  }
}

export function withPassword(address, password) {
  const url = new URL(address);
  url.password = password;
  return url.href;
}

// refused expects an error whose text matches.
export async function refused(promise, pattern) {
  let error;
  try {
    await promise;
  } catch (e) {
    error = e;
  }
  if (!error) throw new Error(`no error, want ${pattern}`);
  if (!pattern.test(String(error))) throw new Error(`${error}, want ${pattern}`);
}
