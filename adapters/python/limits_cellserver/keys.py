"""Functions from an ASGI scope to the key of a request, or None if it has none."""

import hashlib
from ipaddress import ip_address, ip_network

_V6_BITS = 64
_MAX_KEY_BYTES = 256


def by_address(trusted=()):
    """Keys by the visitor's address, IPv6 by its /64, as a host has that many.

    trusted are the proxies' addresses and networks, and "unix" if the peer comes by a unix socket. Only they
    are believed: the last untrusted address of X-Forwarded-For is the visitor's.
    """
    networks = [ip_network(t) for t in trusted if t != "unix"]

    def trusts(address):
        return address is None or any(address in n for n in networks if n.version == address.version)

    def key(scope):
        client = scope.get("client")
        address = _read(client[0]) if client and client[0] else None
        if address is None and "unix" not in trusted:
            return None
        if trusts(address):
            for text in reversed(_values(scope, "x-forwarded-for")):
                for part in reversed(text.split(",")):
                    address = _read(part)
                    if address is None:  # the proxy's own words, and no address
                        return None
                    if not trusts(address):
                        return _text(address)
        return address and _text(address)

    return key


def by_header(name):
    """Keys by a header, such as an API key. A request without it, or with several, has no key."""

    def key(scope):
        values = _values(scope, name)
        return values[0] if len(values) == 1 and values[0] else None

    return key


def by_user():
    """Keys by scope["user"] of Starlette's AuthenticationMiddleware. Without a login there is no key."""

    def key(scope):
        user = scope.get("user")
        if not getattr(user, "is_authenticated", False):
            return None
        try:
            return user.identity or None
        except NotImplementedError:  # Starlette's SimpleUser has a name only
            return user.display_name or None

    return key


def bound(key):
    """Returns a key of a length that the server takes. The adapter for Go makes the same of a long one."""
    if isinstance(key, int) and not isinstance(key, bool):
        key = str(key)
    raw = key.encode("utf-8", "surrogateescape") if isinstance(key, str) else key
    if not isinstance(raw, (bytes, memoryview)):
        raise TypeError(f"a key is a str, bytes or an int, not {type(key).__name__}")
    return raw if len(raw) <= _MAX_KEY_BYTES else b"sha256:" + hashlib.sha256(raw).hexdigest().encode()


def _values(scope, name):
    name = name.lower().encode("latin-1")
    return [v.decode("latin-1").strip() for n, v in scope["headers"] if n.lower() == name]


def _read(text):
    """Reads an address, with a port or without."""
    text = text.strip()
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def _text(address):
    if address.version == 4:
        return str(address)
    return str(ip_network((address, _V6_BITS), strict=False))
