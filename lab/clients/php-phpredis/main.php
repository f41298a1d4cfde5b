<?php
// Uses the server as users of phpredis do. phpredis has no URLs: its users parse them like this.

const SCRIPT = "return redis.call('cl.throttle', KEYS[1], ARGV[1], ARGV[2], ARGV[3])";
const DAY_SECONDS = 86400; // a period so long that no unit leaks during a check
const FRESH = [0, 16, 15, -1, 2]; // the reply to 15 30 60 for a new key
const TIMEOUT_SECONDS = 10;

// open connects by a URL, in which rediss enables TLS.
function open(string $url, array $tls = [], ?string $password = null): Redis
{
    $parts = parse_url($url);
    $redis = new Redis();
    $host = ($parts['scheme'] === 'rediss' ? 'tls://' : '') . $parts['host'];
    // A warning says why TLS failed: include it in the exception.
    set_error_handler(fn($level, $text) => throw new RedisException($text), E_WARNING);
    try {
        // Any stream context enables TLS, even an empty one.
        $context = $parts['scheme'] === 'rediss' ? ['stream' => $tls] : [];
        $redis->connect($host, $parts['port'], TIMEOUT_SECONDS, null, 0, TIMEOUT_SECONDS, $context);
    } finally {
        restore_error_handler();
    }
    $redis->auth($password ?? rawurldecode($parts['pass']));
    $redis->select((int) ltrim($parts['path'] ?? '/0', '/'));
    return $redis;
}

function say(array $line): void
{
    echo json_encode($line, JSON_UNESCAPED_SLASHES), "\n";
    flush();
}

function check(string $name, callable $run): void
{
    global $failed;
    try {
        $run();
        say(['check' => $name, 'ok' => true]);
    } catch (Throwable $e) {
        $failed = true;
        say(['check' => $name, 'error' => get_class($e) . ': ' . $e->getMessage()]);
    }
}

function expect(mixed $got, mixed $want): void
{
    if ($got !== $want) {
        throw new RuntimeException(json_encode($got) . ', want ' . json_encode($want));
    }
}

function refused(callable $run, string $text): void
{
    try {
        $run();
    } catch (RedisException $e) {
        expect(str_contains($e->getMessage(), $text) ? $text : $e->getMessage(), $text);
        return;
    }
    throw new RuntimeException("no error, want $text");
}

function throttle(Redis $redis, string $key, int ...$limit): mixed
{
    return $redis->rawCommand('CL.THROTTLE', $key, ...$limit);
}

function fresh(Redis $redis, string $key): void
{
    expect(throttle($redis, $key, 15, 30, 60), FRESH);
}

function firstThree(array $replies): array
{
    return array_map(fn($reply) => array_slice($reply, 0, 3), $replies);
}

function pipeline(Redis $redis): void
{
    $batch = $redis->multi(Redis::PIPELINE);
    for ($i = 0; $i < 100; $i++) {
        throttle($batch, 'pipeline', 49, 1, DAY_SECONDS);
    }
    $want = array_map(fn($i) => [$i < 50 ? 0 : 1, 50, max(49 - $i, 0)], range(0, 99));
    expect(firstThree($batch->exec()), $want);
}

function transaction(Redis $redis): void
{
    $multi = $redis->multi();
    for ($i = 0; $i < 3; $i++) {
        throttle($multi, 'transaction', 1, 1, DAY_SECONDS);
    }
    expect(firstThree($multi->exec()), [[0, 2, 1], [0, 2, 0], [1, 2, 0]]);
}

// watch expects a transaction to abort because another connection wrote its key, and then one to succeed.
function watch(Redis $redis): void
{
    $other = open(getenv('REDIS_URL'));
    $redis->watch('watch');
    throttle($other, 'watch', 15, 1, DAY_SECONDS);
    expect(throttle($redis->multi(), 'watch', 15, 1, DAY_SECONDS)->exec(), false);
    $redis->watch('watch');
    expect(firstThree(throttle($redis->multi(), 'watch', 15, 1, DAY_SECONDS)->exec()), [[0, 16, 14]]);
}

// evalsha falls back to EVAL if the server does not have the script, as phpredis's users do.
function evalsha(Redis $redis): void
{
    $known = [];
    foreach (['evalsha:first', 'evalsha:second'] as $key) {
        $redis->clearLastError();
        $reply = $redis->evalSha(sha1(SCRIPT), [$key, 15, 30, 60], 1);
        $known[] = $redis->getLastError() === null;
        if ($reply === false && str_starts_with($redis->getLastError(), 'NOSCRIPT')) {
            $reply = $redis->eval(SCRIPT, [$key, 15, 30, 60], 1);
        }
        expect($reply, FRESH);
    }
    expect($known, [false, true]);
}

// pool uses eight processes with a connection each, as PHP does to serve many clients.
function pool(): void
{
    $workers = [];
    for ($i = 0; $i < 8; $i++) {
        $workers[] = popen(escapeshellarg(PHP_BINARY) . ' ' . escapeshellarg(__FILE__) . ' worker', 'r');
    }
    $passed = 0;
    foreach ($workers as $worker) {
        $passed += (int) stream_get_contents($worker);
        expect(pclose($worker), 0);
    }
    expect($passed, 100);
}

function worker(): void
{
    $redis = open(getenv('REDIS_URL'));
    $passed = 0;
    for ($i = 0; $i < 100; $i++) {
        $passed += 1 - throttle($redis, 'pool', 99, 1, DAY_SECONDS)[0];
    }
    echo $passed;
}

function tls(): void
{
    $url = getenv('REDIS_TLS_URL');
    refused(fn() => open($url), 'certificate verify failed'); // only with the system's authorities
    fresh(open($url, ['cafile' => getenv('REDIS_CA')]), 'tls');
}

function database(Redis $redis): void
{
    fresh($redis, 'database');
    fresh(open(getenv('REDIS_DB3_URL')), 'database'); // where the key of the same name is separate
}

function reconnect(Redis $redis): void
{
    echo "RESTART\n";
    flush();
    expect(fgets(STDIN), "restarted\n");
    fresh($redis, 'reconnect');
}

if (($argv[1] ?? '') === 'worker') {
    worker();
    exit(0);
}
$failed = false;
say(['version' => phpversion('redis')]);
$redis = open(getenv('REDIS_URL'));
check('url', fn() => expect($redis->ping(), true));
check('tls', fn() => tls());
check('throttle', fn() => fresh($redis, 'throttle'));
check('pipeline', fn() => pipeline($redis));
check('transaction', fn() => transaction($redis));
check('watch', fn() => watch($redis));
check('evalsha', fn() => evalsha($redis));
check('eval', fn() => expect($redis->eval(SCRIPT, ['eval', 15, 30, 60], 1), FRESH));
check('pool', fn() => pool());
check('wrong password', fn() => refused(fn() => open(getenv('REDIS_URL'), [], 'not it'), 'WRONGPASS'));
check('database', fn() => database($redis));
check('reconnect', fn() => reconnect($redis));
exit($failed ? 1 : 0);
