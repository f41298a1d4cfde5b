// What the programs for Node share: they report to the runner, ask it to restart the server, and compare answers.
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { isDeepStrictEqual } from "node:util";

export const SCRIPT = "return redis.call('cl.throttle', KEYS[1], ARGV[1], ARGV[2], ARGV[3])";
export const DAY_SECONDS = "86400"; // a period so long that nothing leaks while a check runs
export const FRESH = [0, 16, 15, -1, 2]; // the answer to 15 30 60 for a key that was not there

const lines = createInterface({ input: process.stdin });

function say(line) {
  process.stdout.write(JSON.stringify(line) + "\n");
}

// version says which version of a package is installed beside the program.
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

// finish lets the program end: it no longer hears the runner.
export function finish() {
  lines.close();
}

export function expect(got, want) {
  if (!isDeepStrictEqual(got, want)) throw new Error(`${JSON.stringify(got)}, want ${JSON.stringify(want)}`);
}

// expectPipelined wants the replies to 100 calls of 49 1 DAY_SECONDS: the first 50 pass.
export function expectPipelined(replies) {
  expect(
    replies.map((r) => r.slice(0, 3)),
    Array.from({ length: 100 }, (_, i) => [i < 50 ? 0 : 1, 50, Math.max(49 - i, 0)]),
  );
}

// expectTransacted wants the replies to three calls of 1 1 DAY_SECONDS: the first two pass.
export function expectTransacted(replies) {
  expect(replies.map((r) => r.slice(0, 3)), [[0, 2, 1], [0, 2, 0], [1, 2, 0]]);
}

// expectPooled makes 100 calls by each of eight workers of 99 1 DAY_SECONDS on one key, and wants 100 of them to pass.
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

export function withPassword(address, password) {
  const url = new URL(address);
  url.password = password;
  return url.href;
}

// refused wants an error whose text matches.
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
