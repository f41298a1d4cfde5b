"""Servers for the tests, on ports of their own, and ended with them."""

import atexit
import itertools
import os
import re
import signal
import subprocess
import sys
import tempfile
import unittest

import redis

HERE = os.path.dirname(os.path.abspath(__file__))
ADAPTER = os.path.dirname(HERE)
ROOT = os.path.dirname(os.path.dirname(ADAPTER))
sys.path.insert(0, ADAPTER)

ADDRESS = re.compile(r" (tcp|tls|http)=127\.0\.0\.1:(\d+)")

PATIENCE = "?socket_timeout=60&socket_connect_timeout=60"

_built = tempfile.TemporaryDirectory()
atexit.register(_built.cleanup)


def binary():
    """Returns the program, of the environment or built once."""
    if os.environ.get("CELLSERVER"):
        return os.path.abspath(os.environ["CELLSERVER"])
    path = os.path.join(_built.name, "cellserver")
    if not os.path.exists(path):
        env = {"CGO_ENABLED": "0", "GOFLAGS": "-pgo=off -trimpath", **os.environ}
        subprocess.run(["go", "build", "-o", path, "./cmd/cellserver"], cwd=ROOT, env=env, check=True)
    return path


class Server:
    """A cellserver that can be stopped, hung and started again on its port."""

    def __init__(self, *args):
        self.args, self.port, self.process = args, 0, None
        self.start()

    def start(self):
        listen = [f"--addr=127.0.0.1:{self.port}", "--metrics-addr=127.0.0.1:0", "--http-addr=127.0.0.1:0"]
        self.process = subprocess.Popen([binary(), *listen, *self.args], stderr=subprocess.PIPE, text=True)
        log = ""
        for line in self.process.stderr:
            log += line
            if "msg=ready" in line:
                self.ports = {name: int(port) for name, port in ADDRESS.findall(line)}
                self.port = self.ports["tcp"]
                return
        raise RuntimeError(log)

    def hang(self):
        self.process.send_signal(signal.SIGSTOP)
        os.waitpid(self.process.pid, os.WUNTRACED)

    def go_on(self):
        self.process.send_signal(signal.SIGCONT)

    def stop(self):
        self.go_on()
        self.process.kill()
        self.process.wait()
        self.process.stderr.close()

    @property
    def hasty_url(self):
        """With the time-outs of users, for calls that are not answered."""
        return f"cellserver://127.0.0.1:{self.port}"

    @property
    def url(self):
        """With time-outs that are long enough on a busy machine."""
        return self.hasty_url + PATIENCE


def serve_users(test, *users):
    """Starts a server with users, by their rules, beside the default one."""
    with tempfile.NamedTemporaryFile("w", suffix=".acl") as file:
        file.write("".join(f"user {user}\n" for user in ("default on nopass ~* +@all", *users)))
        file.flush()
        return serve(test, f"--aclfile={file.name}")


def serve(test, *args):
    """Starts a server for a test or a class of tests."""
    server = Server(*args)
    (test.addClassCleanup if isinstance(test, type) else test.addCleanup)(server.stop)
    return server


def fill(client, *command):
    """Makes keys by a command, with None for the key, until no shard of a server with FULL has room."""
    for width in (4000, 300, 16, 8):
        for first in itertools.count(step=500):
            pipe = client.pipeline(transaction=False)
            for i in range(first, first + 500):
                pipe.execute_command(*(f"{i:{width}d}" if word is None else word for word in command))
            replies = pipe.execute(raise_on_error=False)
            refused = [r for r in replies if isinstance(r, redis.ResponseError) and "maxmemory" in str(r)]
            if len(refused) == len(replies):
                break


FULL = ("--maxmemory=48mb", "--maxmemory-policy=noeviction")


class TestCase(unittest.TestCase):
    """Has a server for all tests of a class."""

    @classmethod
    def setUpClass(cls):
        cls.server = serve(cls)
