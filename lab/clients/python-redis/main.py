"""Does with the server what users of redis-py do."""

import json
import os
import sys
import threading
import time

import redis

SCRIPT = "return redis.call('cl.throttle', KEYS[1], ARGV[1], ARGV[2], ARGV[3])"
DAY_SECONDS = 86400  # a period so long that no unit leaks during a check
URL = os.environ["REDIS_URL"]

failed = False


def say(**line):
    print(json.dumps(line), flush=True)


def check(name, run):
    global failed
    try:
        run()
        say(check=name, ok=True)
    except Exception as e:  # any exception fails the check
        failed = True
        say(check=name, error=f"{type(e).__name__}: {e}")


def expect(got, want):
    if got != want:
        raise AssertionError(f"{got}, want {want}")


def throttle(client, key, *limit):
    return client.execute_command("CL.THROTTLE", key, *limit)


def fresh(client, key):
    expect(throttle(client, key, 15, 30, 60), [0, 16, 15, -1, 2])


def tls():
    url = os.environ["REDIS_TLS_URL"]
    try:
        redis.from_url(url).ping()  # only with the system's authorities
        raise AssertionError("connected without the authority")
    except redis.ConnectionError as e:
        expect("CERTIFICATE_VERIFY_FAILED" in str(e), True)
    with redis.from_url(url, ssl_ca_certs=os.environ["REDIS_CA"]) as client:
        fresh(client, "tls")


def pipeline():
    with client.pipeline(transaction=False) as pipe:
        for _ in range(100):
            throttle(pipe, "pipeline", 49, 1, DAY_SECONDS)
        replies = pipe.execute()
    expect([r[:3] for r in replies], [[i // 50, 50, max(49 - i, 0)] for i in range(100)])


def transaction():
    with client.pipeline(transaction=True) as pipe:
        for _ in range(3):
            throttle(pipe, "transaction", 1, 1, DAY_SECONDS)
        replies = pipe.execute()
    expect([r[:3] for r in replies], [[0, 2, 1], [0, 2, 0], [1, 2, 0]])


def watch():
    """Has a transaction given up because another connection wrote its key, and then one that nobody disturbs."""
    with client.pipeline() as pipe:
        pipe.watch("watch")
        throttle(client, "watch", 15, 1, DAY_SECONDS)
        pipe.multi()
        throttle(pipe, "watch", 15, 1, DAY_SECONDS)
        try:
            raise AssertionError(f"EXEC gave {pipe.execute()} though the key was written")
        except redis.WatchError:
            pass
        pipe.watch("watch")
        pipe.multi()
        throttle(pipe, "watch", 15, 1, DAY_SECONDS)
        expect(pipe.execute()[0][:3], [0, 16, 14])


def evalsha():
    script = client.register_script(SCRIPT)  # sends EVALSHA, and loads the script if the server does not have it
    for key in ("evalsha:unknown", "evalsha:known"):
        expect(script(keys=[key], args=[15, 30, 60]), [0, 16, 15, -1, 2])


def pool():
    connections = redis.BlockingConnectionPool.from_url(URL, max_connections=8)
    pooled = redis.Redis(connection_pool=connections)
    answers = []

    def work():
        for _ in range(100):
            answers.append(throttle(pooled, "pool", 99, 1, DAY_SECONDS)[0])

    workers = [threading.Thread(target=work) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    connections.disconnect()
    expect((len(answers), answers.count(0)), (800, 100))


def increx():
    """Sends the words of redis-py 8's method increx, which Debian's redis-py does not have, in its order."""
    now = time.time()
    kept, forever = 1000, -1
    for words, want, over, most_left in (
        ("", [1, 1], -2, forever),
        ("BYINT 5 LBOUND 0 UBOUND 10", [6, 5], -2, forever),
        (f"BYINT 5 UBOUND 10 EX {kept}", [6, 0], -2, forever),  # declined, with its expiry
        (f"BYINT 5 UBOUND 10 SATURATE EX {kept}", [10, 4], 0, kept),
        ("BYINT -50 LBOUND 2 SATURATE PX 9000000 ENX", [2, -8], 0, kept),
        (f"BYINT 1 EXAT {int(now) + 20_000}", [3, 1], kept, 20_000),
        (f"BYINT 1 PXAT {int(now * 1000) + 40_000_000}", [4, 1], 20_000, 40_000),
        ("BYINT 1 PERSIST", [5, 1], -2, forever),
        (f"BYINT 1 EX {kept} ENX", [6, 1], 0, kept),
        ("BYFLOAT 0.5 LBOUND 0 UBOUND 7.5", [b"6.5", b"0.5"], 0, kept),
        ("BYFLOAT 10 UBOUND 7.5", [b"6.5", b"0"], 0, kept),
        ("BYFLOAT 10 UBOUND 7.5 SATURATE PX 9000000", [b"7.5", b"1"], kept, 9_000),
    ):
        expect((words, client.execute_command("INCREX", "increx", *words.split())), (words, want))
        expect((words, over < client.ttl("increx") <= most_left), (words, True))


def wrong_password():
    options = redis.connection.parse_url(URL) | {"password": "not it"}
    try:
        redis.Redis(**options).ping()
    except (redis.AuthenticationError, redis.ResponseError) as e:  # which one depends on redis-py's version
        expect("invalid username-password pair" in str(e), True)
    else:
        raise AssertionError("let in with a wrong password")


def database():
    fresh(client, "database")
    with redis.from_url(os.environ["REDIS_DB3_URL"]) as other:  # where the key of the same name is separate
        fresh(other, "database")


def reconnect():
    print("RESTART", flush=True)
    expect(sys.stdin.readline(), "restarted\n")
    fresh(client, "reconnect")


say(version=redis.__version__)
client = redis.from_url(URL)
check("url", client.ping)
check("tls", tls)
check("throttle", lambda: fresh(client, "throttle"))
check("pipeline", pipeline)
check("transaction", transaction)
check("watch", watch)
check("evalsha", evalsha)
check("eval", lambda: expect(client.eval(SCRIPT, 1, "eval", 15, 30, 60), [0, 16, 15, -1, 2]))
check("pool", pool)
check("wrong password", wrong_password)
check("database", database)
check("increx", increx)
check("reconnect", reconnect)
sys.exit(failed)
