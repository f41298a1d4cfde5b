"""An ASGI middleware, for any framework."""

import json

_QUOTA_EXCEEDED = "https://iana.org/assignments/http-problem-types#quota-exceeded"
_QUOTA_TITLE = "Request cannot be satisfied as assigned quota has been exceeded"
_TRY_AGAIN_LATER = 1013  # status of a websocket


class RateLimitMiddleware:
    """Limits requests and websockets by an AsyncLimiter.

    key is a function of the scope, such as by_address(); if it returns None, the answer is 400. A request for
    which exempt returns True is not limited. Denied ones get 429, and without a decision 503.
    """

    def __init__(self, app, limiter, key, exempt=lambda scope: False, quantity=1):
        self.app, self.limiter, self.key, self.exempt, self.quantity = app, limiter, key, exempt, quantity

    async def __call__(self, scope, receive, send):
        if scope["type"] not in ("http", "websocket") or self.exempt(scope):
            return await self.app(scope, receive, send)
        key = self.key(scope)
        if key is None:
            problem = _problem("about:blank", "Bad Request", 400, "the request does not say whose it is")
            return await _refuse(scope, receive, send, problem, {})
        decision = await self.limiter.check(key, self.quantity)
        headers = decision.headers(self.limiter.limit)
        if not decision.allowed:
            return await _refuse(scope, receive, send, self._denial(decision), headers)

        async def send_with_headers(message):
            if message["type"] in ("http.response.start", "websocket.accept"):
                message = {**message, "headers": [*message.get("headers", ()), *_raw(headers)]}
            await send(message)

        await self.app(scope, receive, send_with_headers)

    def _denial(self, decision):
        if not decision.decided:
            return _problem("about:blank", "Service Unavailable", 503, "the rate limiter does not answer")
        detail = "this many are never allowed at once"
        if decision.retry_after >= 0:
            detail = f"try again in {decision.retry_after} s"
        elif decision.limit == 0:
            detail = "nothing is ever allowed"
        problem = _problem(_QUOTA_EXCEEDED, _QUOTA_TITLE, 429, detail)
        return {**problem, "violated-policies": [self.limiter.limit]}


def _problem(kind, title, status, detail):
    """Returns a problem detail of RFC 9457."""
    return {"type": kind, "title": title, "status": status, "detail": detail}


async def _refuse(scope, receive, send, problem, headers):
    if scope["type"] == "websocket":
        await receive()
        return await send({"type": "websocket.close", "code": _TRY_AGAIN_LATER, "reason": problem["detail"]})
    body = json.dumps(problem, separators=(",", ":")).encode() + b"\n"
    headers = {
        "Content-Type": "application/problem+json",
        "Content-Length": str(len(body)),
        "Cache-Control": "no-store",
        **headers,
    }
    await send({"type": "http.response.start", "status": problem["status"], "headers": _raw(headers)})
    await send({"type": "http.response.body", "body": body})


def _raw(headers):
    return [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
