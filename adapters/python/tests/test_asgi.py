import asyncio
import json
import types
import unittest

from support import TestCase

import limits_cellserver as lc

DAY = 86_400


async def app(scope, receive, send):
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.accept"})
        return
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]})
    await send({"type": "http.response.body", "body": b"hello"})


def scope_of(client="192.0.2.1", kind="http", **headers):
    raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return {"type": kind, "path": "/", "client": client and (client, 1234), "headers": raw}


def visit(url, *scopes, **options):
    """Sends requests through the middleware and returns the messages of each."""

    async def run():
        client, all_sent = lc.connect_async(url), []
        limiter = lc.AsyncLimiter(client, "site", options.pop("on_error", "open"))
        middleware = lc.RateLimitMiddleware(app, limiter, **{"key": lc.by_address(), **options})

        async def receive():
            return {"type": "websocket.connect"}

        for scope in scopes:
            sent = []

            async def send(message, sent=sent):
                sent.append(message)

            await middleware(scope, receive, send)
            all_sent.append(sent)
        await client.connection_pool.disconnect()
        return all_sent

    return asyncio.run(run())


def fields(message):
    return {name.decode(): value.decode() for name, value in message["headers"]}


class Middleware(TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        lc.connect(cls.server.url).execute_command("CL.LIMIT", "SET", "site", "FIXEDWINDOW", 2, DAY)

    def test_requests(self):
        first, _, third = visit(self.server.url, *[scope_of("192.0.2.1")] * 3)
        self.assertEqual(first[0]["status"], 200)
        self.assertEqual(fields(first[0])["ratelimit-policy"], '"site";q=2')
        self.assertRegex(fields(first[0])["ratelimit"], r'^"site";r=1;t=86\d{3}$')
        self.assertEqual(fields(first[0])["content-type"], "text/plain")
        self.assertEqual(third[0]["status"], 429)
        self.assertRegex(fields(third[0])["retry-after"], r"^86\d{3}$")
        body = json.loads(third[1]["body"])
        self.assertEqual((body["status"], body["violated-policies"]), (429, ["site"]))
        self.assertEqual(fields(third[0])["content-length"], str(len(third[1]["body"])))

    def test_websockets(self):
        sent = visit(self.server.url, *[scope_of("192.0.2.2", "websocket")] * 3)
        self.assertEqual([s[0]["type"] for s in sent], ["websocket.accept"] * 2 + ["websocket.close"])
        self.assertIn("ratelimit", fields(sent[0][0]))

    def test_options(self):
        url, scope = self.server.url, scope_of("192.0.2.3")
        self.assertEqual([s[0]["status"] for s in visit(url, scope, scope, quantity=2)], [200, 429])
        (exempt,) = visit(url, scope, exempt=lambda scope: scope["path"] == "/")
        self.assertEqual((exempt[0]["status"], "ratelimit" in fields(exempt[0])), (200, False))
        (nobody,) = visit(url, scope, key=lc.by_header("x-api-key"))
        self.assertEqual(nobody[0]["status"], 400)
        (never,) = visit(url, scope_of("192.0.2.4"), quantity=3)
        self.assertIn(b"never allowed at once", never[1]["body"])

    def test_no_server(self):
        gone = "redis://127.0.0.1:1"  # a port on which nobody listens
        with self.assertLogs("limits_cellserver"):
            (got,) = visit(gone, scope_of())
            self.assertEqual((got[0]["status"], list(fields(got[0]))), (200, ["content-type"]))
            (got,) = visit(gone, scope_of(), on_error="closed")
            self.assertEqual((got[0]["status"], fields(got[0])["retry-after"]), (503, "1"))
            self.assertNotIn("ratelimit", fields(got[0]))
            got = visit(gone, scope_of(), scope_of(), on_error=lc.Local(0, 1, DAY))
            self.assertEqual([g[0]["status"] for g in got], [200, 429])
            self.assertEqual(fields(got[1][0])["ratelimit"], '"site";r=0;t=86400')


class Keys(unittest.TestCase):
    def test_by_address(self):
        proxies = ("10.0.0.0/8", "fd00::/8", "192.0.2.9")
        for trusted, peer, forwarded, want in (
            ((), "192.0.2.1", None, "192.0.2.1"),
            ((), "192.0.2.1", "198.51.100.1", "192.0.2.1"),
            (proxies, "192.0.2.1", "198.51.100.1", "192.0.2.1"),
            (proxies, "10.0.0.1", "198.51.100.1", "198.51.100.1"),
            (proxies, "10.0.0.1", "203.0.113.7, 198.51.100.1,10.9.9.9 , 192.0.2.9", "198.51.100.1"),
            (proxies, "10.0.0.1", "nonsense, 198.51.100.1", "198.51.100.1"),
            (proxies, "10.0.0.1", "198.51.100.1, nonsense", None),
            (proxies, "10.0.0.1", "10.0.0.3, 10.0.0.2", "10.0.0.3"),
            (proxies, "10.0.0.1", None, "10.0.0.1"),
            (proxies, "::ffff:10.0.0.1", "198.51.100.1:4711", "198.51.100.1"),
            (proxies, "fd00::1", "[2001:db8:1:2:3::4]:80", "2001:db8:1:2::/64"),
            ((), "2001:db8:1:2:ffff::1", None, "2001:db8:1:2::/64"),
            ((), "fe80::1%eth0", None, "fe80::/64"),
            (("unix",), None, "198.51.100.1", "198.51.100.1"),
            (("unix",), None, None, None),
            ((), None, "198.51.100.1", None),
            ((), "", None, None),
        ):
            headers = {"x_forwarded_for": forwarded} if forwarded else {}
            got = lc.by_address(trusted)(scope_of(peer, **headers))
            self.assertEqual(got, want, (trusted, peer, forwarded))
        two = scope_of("10.0.0.1", x_forwarded_for="203.0.113.7")
        two["headers"].append((b"x-forwarded-for", b"198.51.100.1"))
        self.assertEqual(lc.by_address(proxies)(two), "198.51.100.1")
        with self.assertRaises(ValueError):
            lc.by_address(["10.0.0.1/8"])

    def test_by_header_and_user(self):
        key = lc.by_header("X-API-Key")
        twice = scope_of(x_api_key="a")
        twice["headers"] *= 2
        got = [key(s) for s in (scope_of(x_api_key=" a "), scope_of(x_api_key=""), scope_of(), twice)]
        self.assertEqual(got, ["a", None, None, None])
        for user, want in (
            (None, None),
            (types.SimpleNamespace(is_authenticated=False, identity="a"), None),
            (types.SimpleNamespace(is_authenticated=True, identity="a"), "a"),
            (Named("a"), "a"),
        ):
            self.assertEqual(lc.by_user()({"user": user} if user else {}), want)


class Named:
    """A user as Starlette's SimpleUser."""

    is_authenticated = True

    def __init__(self, name):
        self.display_name = name

    @property
    def identity(self):
        raise NotImplementedError


if __name__ == "__main__":
    unittest.main()
