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
        self.directory = directory.name
        self.http_ports = {port: str(free_port()) for port in ("8000", "8001", "8002")}
        with open(os.path.join(support.ADAPTER, "README.md")) as file:
            self.fences = FENCE.findall(file.read())
        for _, name, text in self.fences:
            if name:
                with open(os.path.join(self.directory, name), "w") as file:
                    file.write(self.place(text))

    def place(self, text):
        text = text.replace("cellserver://127.0.0.1:6380", self.server.url).replace("python3", PYTHON)
        text = text.replace("6380", str(self.server.port))
        return re.sub(r"\b800\d\b", lambda found: self.http_ports[found[0]], text)

    def run_command(self, command):
        env = {**os.environ, "PYTHONPATH": support.ADAPTER, "FAKETTY": "1"}
        if command.endswith("&"):
            process = subprocess.Popen(["bash", "-c", "exec " + command[:-1]], cwd=self.directory, env=env)
            self.addCleanup(process.wait)
            self.addCleanup(process.send_signal, signal.SIGTERM)
            self.wait_for_http(process, int(re.search(r"--port (\d+)", command)[1]))
            return ""
        output = subprocess.check_output(["bash", "-c", command], cwd=self.directory, env=env, text=True)
        return output.replace("\r", "")

    def wait_for_http(self, process, port):
        while process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                return
            except ConnectionRefusedError:
                time.sleep(0.02)
        self.fail("the example has ended")

    def test_transcripts_and_client(self):
        for _, _, text in (f for f in self.fences if f[0] == "console" and "proxy.py" not in f[2]):
            for step in re.split(r"(?m)^\$ ", text)[1:]:
                command, _, want = step.partition("\n")
                self.assertEqual(self.run_command(self.place(command)), want, command)
        self.assertEqual(self.run_command(f"{PYTHON} client.py"), "15 left\n")

    def load(self, name):
        spec = importlib.util.spec_from_file_location(name, os.path.join(self.directory, name + ".py"))
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    def test_python_path(self):
        export = next(text for language, _, text in self.fences if language == "sh").splitlines()[1]
        command = export + f" && {PYTHON} -c 'import limits_cellserver; print(limits_cellserver.__file__)'"
        got = subprocess.check_output(["bash", "-c", command], cwd=support.ROOT, text=True)
        self.assertEqual(os.path.dirname(os.path.dirname(got)), support.ADAPTER)

    def test_flask_without_a_server(self):
        module = self.load("named_app")
        self.assertEqual(module.limiter.on_error, "closed")  # as a login's is
        client = module.app.test_client()
        nobody = limits_cellserver.connect("cellserver://127.0.0.1:1")
        module.limiter = limits_cellserver.Limiter(nobody, "login")
        for on_error, status, retry_after in (("open", 200, None), ("closed", 503, "1")):
            module.limiter.on_error = on_error
            module.limiter._reported = float("-inf")
            with self.assertLogs("limits_cellserver"):
                got = client.get("/")
            answer = got.status_code, got.headers.get("Retry-After")
            self.assertEqual(answer, (status, retry_after), on_error)

    def test_proxy(self):
        example = os.path.join(support.ADAPTER, "example")
        server = support.serve(self, f"--limits-file={example}/limits.yaml")
        (text,) = (f[2] for f in self.fences if f[0] == "console" and "proxy.py" in f[2])
        model, proxy, curl, want = re.fullmatch(r"(?s)\$ (.*?) &\n\$ (.*?) &\n\$ (.*?) \| (grep.*)", text).groups()
        grep, _, want = want.partition("\n")
        ports = {"8000": str(free_port()), "8001": str(free_port())}
        proxy += f" --cellserver={server.hasty_url} --model=http://127.0.0.1:8001 --timeout=60"
        for command, port in ((model, "8001"), (proxy, "8000")):
            command = f"exec {command} --addr=127.0.0.1:{port}".replace("python3", PYTHON)
            command = re.sub(r"\b800\d\b", lambda found: ports[found[0]], command)
            env = {**os.environ, "PYTHONPATH": support.ADAPTER}
            if "proxy" in command:
                command += f" --journal={self.directory}/holds.jsonl"
            process = subprocess.Popen(["bash", "-c", command], cwd=example, env=env, stdout=subprocess.DEVNULL)
            self.addCleanup(process.wait)
            self.addCleanup(process.kill)
            self.wait_for_http(process, int(ports[port]))
        got = self.run_command(f"{curl} | {grep}".replace("8000", ports["8000"]))
        reset = re.compile(r"(tokens: )\d+h\d+m\d+s|(tokens: )\d+m\d+s|(tokens: )\d+s")
        self.assertEqual(reset.sub("tokens: a day", got), reset.sub("tokens: a day", want))

    def test_decision(self):
        """The README names all that a Decision has."""
        fields = [*limits_cellserver.Decision._fields, "decided", "headers(name)", "near(share=0.8)"]
        with open(os.path.join(support.ADAPTER, "README.md")) as file:
            table = file.read().partition("| of a `Decision` |")[2].partition("\n\n")[0]
        named = re.findall(r"`([^`]+)`", "".join(re.findall(r"(?m)^\| (`[^|]*)\|", table)))
        self.assertEqual(sorted(named), sorted(fields))

    def test_hold(self):
        """The README names all that a Hold has."""
        record = {"id": "a", "uses": [["org", "acme", 1]], "ttl": 1, "local": False}
        hold = limits_cellserver.Limiter(None).resume(record)
        has = {name for name in dir(hold) if not name.startswith("_")} - {"reserve", "ttl", "charge"}
        with open(os.path.join(support.ADAPTER, "README.md")) as file:
            table = file.read().partition("| of a hold |")[2].partition("\n\n")[0]
        named = re.findall(r"`(\w+)[^`]*`", "".join(re.findall(r"(?m)^\| (`[^|]*)\|", table)))
        self.assertEqual(sorted(named), sorted(has))

    def test_flask_limiter_by_user(self):
        app = flask.Flask(__name__)
        app.secret_key = "secret"
        flask_limiter.Limiter(
            self.load("user_key").by_user, app=app, default_limits=["1 per day"], storage_uri=self.server.url)
        app.add_url_rule("/", view_func=lambda: "hello")
        for user in ("laoqian", "acme", None):
            client = app.test_client()
            with client.session_transaction() as session:
                session.update({"user": user} if user else {})
            self.assertEqual([client.get("/").status_code for _ in range(2)], [200, 429], user)

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
