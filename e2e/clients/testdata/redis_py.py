"""Talks to the server at the URL of the first argument as users of redis-py do; prints what it got as JSON."""

import json
import sys

import redis


def attempt(call):
    try:
        return call()
    except redis.ResponseError as error:
        return "%s: %s" % (type(error).__name__, error)


client = redis.Redis.from_url(sys.argv[1], client_name="redis-py", decode_responses=True)
got = {
    "ping": client.ping(),
    "single": [client.execute_command("CL.THROTTLE", "laoqian:reply", 15, 1, 3600, 1)[:4] for _ in range(2)],
    "ttl": 3600 < client.ttl("laoqian:reply") <= 7200,
    "exists": client.exists("laoqian:reply", "no such key"),
    "name": client.client_getname(),
    "error": attempt(lambda: client.execute_command("CL.THROTTLE", "a", "b", 1, 1)),
    "info": client.info("server")["redis_version"],
    "config": client.config_get("databases"),
    "docs": client.execute_command("COMMAND DOCS", "cl.throttle")[0],
    "modules": [module["name"] for module in client.module_list()],
}

pipe = client.pipeline(transaction=False)
for _ in range(1000):
    pipe.execute_command("CL.THROTTLE", "pipeline", 999, 1, 1000000)
got["pipeline"] = [reply[2] for reply in pipe.execute()]

with client.client() as one:  # a connection of its own
    one.client_setname("renamed")
    one.select(3)
    got["renamed"] = [one.client_getname(), one.client_info()["db"], one.dbsize()]
    one.execute_command("CL.THROTTLE", "k", 0, 1, 60)
    got["database 3"] = [one.dbsize(), one.flushdb(), one.dbsize()]

got["bytes"] = redis.Redis.from_url(sys.argv[1]).execute_command("CL.THROTTLE", b"\x00\xff\r\n", 0, 1, 60)
client.close()
json.dump(got, sys.stdout)
