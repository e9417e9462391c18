"""Which proxy the environment names for an address, if any.

httpx reads the same variables, but refuses to make a client where ``NO_PROXY`` lists an IPv6
address in brackets or a network, as the runners of some companies do.
"""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass


def is_loopback(url: str) -> bool:
    """Whether an address names this machine; a server's "any address" does, to its clients."""
    host = urlsplit(url).hostname or ""
    return host in {"localhost", "::1", "::", "0.0.0.0"} or host.startswith("127.")  # noqa: S104


def proxy_for(url: str) -> str | None:
    """Address of the proxy for an address; None to go there directly, as to this machine always.

    Args:
        url: absolute, of http or https.
    """
    if is_loopback(url):
        return None
    parts = urlsplit(url)
    proxies = getproxies()
    host = parts.hostname or ""
    if proxy_bypass(host) or _is_listed(host, proxies.get("no", "")):
        return None
    found = proxies.get(parts.scheme) or proxies.get("all")
    return f"http://{found}" if found and "://" not in found else found


def _is_listed(host: str, listed: str) -> bool:
    """Whether a host is an address that is listed, by itself or within a network."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    for entry in listed.split(","):
        try:
            network = ipaddress.ip_network(
                entry.strip().replace("[", "").replace("]", ""), strict=False
            )
        except ValueError:
            continue
        if address in network:
            return True
    return False
