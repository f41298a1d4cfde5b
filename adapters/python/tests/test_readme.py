import importlib.util
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

import support
from support import TestCase

import flask
import flask_limiter

import limits_cellserver  # noqa: F401

FENCE = re.compile(r"(?ms)^```(\w+)(?: (\S+))?\n(.*?)^```$")
PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


class Readme(TestCase):
    """Runs the examples as printed, but for ports, and with time-outs for a busy machine."""

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory, self.http_port = directory.name, free_port()
        with open(os.path.join(support.ADAPTER, "README.md")) as file:
            self.fences = FENCE.findall(file.read())
        for _, name, text in self.fences:
            if name:
                with open(os.path.join(self.directory, name), "w") as file:
                    file.write(self.place(text))

    def place(self, text):
        text = text.replace("cellserver://127.0.0.1:6380", self.server.url).replace("python3", PYTHON)
        return text.replace("6380", str(self.server.port)).replace("8000", str(self.http_port))

    def run_command(self, command):
        env = {**os.environ, "PYTHONPATH": support.ADAPTER, "FAKETTY": "1"}
        if command.endswith("&"):
            process = subprocess.Popen(["bash", "-c", "exec " + command[:-1]], cwd=self.directory, env=env)
            self.addCleanup(process.wait)
            self.addCleanup(process.send_signal, signal.SIGTERM)
            self.wait_for_http(process)
            return ""
        output = subprocess.check_output(["bash", "-c", command], cwd=self.directory, env=env, text=True)
        return output.replace("\r", "")

    def wait_for_http(self, process):
        while process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", self.http_port)).close()
                return
            except ConnectionRefusedError:
                time.sleep(0.02)
        self.fail("the example has ended")

    def test_transcripts_and_client(self):
        for _, _, text in (f for f in self.fences if f[0] == "console"):
            for step in re.split(r"(?m)^\$ ", text)[1:]:
                command, _, want = step.partition("\n")
                self.assertEqual(self.run_command(self.place(command)), want, command)
        self.assertEqual(self.run_command(f"{PYTHON} client.py"), "15 left\n")

    def load(self, name):
        spec = importlib.util.spec_from_file_location(name, os.path.join(self.directory, name + ".py"))
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    def test_flask_limiter(self):
        client = self.load("flask_app").app.test_client()
        got = [client.get("/") for _ in range(4)]
        self.assertEqual([g.status_code for g in got], [200, 200, 200, 429])
        self.assertEqual([g.headers["X-RateLimit-Remaining"] for g in got], ["2", "1", "0", "0"])

    def test_flask_limiter_without_a_server(self):
        for options, want in (
            ({"swallow_errors": True}, [200, 200]),
            ({}, [500, 500]),
            ({"in_memory_fallback_enabled": True}, [200, 429]),
        ):
            app = flask.Flask(__name__)
            limiter = flask_limiter.Limiter(
                lambda: "k", app=app, default_limits=["1 per day"], storage_uri="cellserver://127.0.0.1:1", **options)
            limiter.logger.disabled = app.logger.disabled = True
            app.add_url_rule("/", view_func=lambda: "hello")
            self.assertEqual([app.test_client().get("/").status_code for _ in want], want, options)

    @unittest.skipUnless(importlib.util.find_spec("slowapi"), "needs slowapi, which is not in Debian")
    def test_slowapi(self):
        from starlette.testclient import TestClient

        client = TestClient(self.load("slow_app").app)
        self.assertEqual([client.get("/").status_code for _ in range(4)], [200, 200, 200, 429])


if __name__ == "__main__":
    unittest.main()
