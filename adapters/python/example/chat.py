"""What the proxy knows of the shape of OpenAI's requests and answers."""

import json
from decimal import Decimal

from limits_cellserver import usd

MAX_BYTES = 1 << 20  # of a question, and of a line of a stream
MAX_TOKENS = 1_000_000
DEFAULT_MAX_TOKENS = 1_000  # for who gives none: without a bound there is nothing to hold
BYTES_PER_TOKEN = 4

# Dollars for a million tokens of the prompt and of the answer. Only what has a price is a model, as a client
# that makes up names would have a new budget with each.
PRICES = {"small": (Decimal("0.5"), Decimal(2)), "large": (Decimal(5), Decimal(20))}


class Question:
    """What the proxy reads of a request, and changes; all else passes as it is."""

    def __init__(self, body):
        sent = json.loads(body)
        self.model, self.stream = sent["model"], bool(sent.get("stream"))
        if self.model not in PRICES:
            raise ValueError(f"no such model: {self.model!r}")
        self.tells_usage = bool((sent.get("stream_options") or {}).get("include_usage"))
        messages = json.dumps(sent["messages"], separators=(",", ":"))
        self.prompt = 1 + len(messages) // BYTES_PER_TOKEN  # an estimate
        most = max(int(sent.get(name) or 0) for name in ("max_completion_tokens", "max_tokens"))
        if most <= 0:
            most = sent["max_tokens"] = DEFAULT_MAX_TOKENS
        self.max_tokens = most * max(1, int(sent.get("n") or 1))
        if self.max_tokens > MAX_TOKENS:
            raise ValueError(f"an answer has at most {MAX_TOKENS} tokens")
        if self.stream:
            sent["stream_options"] = {"include_usage": True}
        self.body = json.dumps(sent).encode()

    def uses(self, organisation, user):
        """Returns the most that an answer may cost."""
        units = self.units(self.prompt, self.max_tokens)
        return [
            ("org-tokens", organisation, units[0]),
            ("user-tokens", f"{organisation}/{user}", units[1]),
            ("model-tokens", f"{organisation}/{self.model}", units[2]),
            ("org-spend", organisation, units[3]),
        ]

    def units(self, prompt, completion):
        return units(self.model, {"prompt_tokens": prompt, "completion_tokens": completion})

    def counter(self):
        """Returns a count for a stream, whose model may fail and not tell what it has charged for."""
        tokens, counted = 0, [0] * 4

        def count(event):
            nonlocal tokens, counted
            tokens += len(event.get("choices", ()))
            before, counted = counted, self.units(self.prompt, tokens)
            return [now - then for now, then in zip(counted, before)]

        return count


def units(model, usage):
    """Returns what an answer costs, for each of the proxy's uses."""
    prompt, completion = usage["prompt_tokens"], usage["completion_tokens"]
    dollars_in, dollars_out = PRICES[model]
    spend = usd((prompt * dollars_in + completion * dollars_out) / 1_000_000)
    return [prompt + completion] * 3 + [spend]


def events(response):
    """Yields the events of a stream, and {} for its [DONE]. A stream without that has failed."""
    while line := response.readline(MAX_BYTES):
        if line.startswith(b"data: [DONE]"):
            yield {}
            return
        if line.startswith(b"data: "):
            event = json.loads(line[6:])
            if not isinstance(event, dict):
                raise ValueError("an event is an object")
            yield event
    raise ConnectionError("the stream ends before its [DONE]")


def headers(hold):
    """Returns what a client is told: what is left, of the tokens that are the scarcest."""
    tokens = [d for use, d in zip(hold.uses, hold.decisions) if use.limit.endswith("-tokens") and d.decided]
    fields = {}
    if tokens:
        scarcest = min(tokens, key=lambda d: d.remaining)
        fields["x-ratelimit-limit-tokens"] = str(scarcest.limit)
        fields["x-ratelimit-remaining-tokens"] = str(scarcest.remaining)
        if scarcest.reset_after >= 0:
            fields["x-ratelimit-reset-tokens"] = duration(scarcest.reset_after)
    if hold.near():
        fields["x-ratelimit-near"] = ", ".join(f'"{name}"' for name in hold.near())
    return fields


def duration(seconds):
    """Returns such as 6m0s."""
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return (f"{hours}h" if hours else "") + (f"{minutes}m" if hours or minutes else "") + f"{seconds}s"


def denial(hold):
    """Returns the text and the seconds to wait, -1 for never, of the budget that denies longest."""
    use, decision = max(hold.denied, key=lambda of: of[1].retry_after if of[1].retry_after >= 0 else 2**63)
    left = f"{decision.remaining} of {decision.limit} units left"
    text = f'the limit "{use.limit}" has {left} for "{use.key}", and this call needs {use.units}'
    if decision.retry_after >= 0:
        text += f"; try again in {decision.retry_after} s"
    return text, decision.retry_after


def error(code, text):
    kinds = {"rate_limit_exceeded": "tokens", "invalid_request": "invalid_request_error"}
    kind = kinds.get(code, "invalid_request_error" if code == "invalid_api_key" else "server_error")
    return {"error": {"message": text, "type": kind, "code": code, "param": None}}
