import pytest

from mrcr_action.client import Client
from mrcr_action.proxies import proxy_for

VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")

PROXY = "http://proxy:3128"


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@pytest.mark.parametrize(
    ("url", "no_proxy", "expected"),
    [
        ("http://host:8000", "", PROXY),
        ("http://host:8000", "other,.example.org", PROXY),
        ("http://host:8000", "host", None),
        ("http://gpu.example.org", ".example.org", None),
        ("http://10.1.2.3:8000", "10.0.0.0/8", None),
        ("http://11.1.2.3:8000", "10.0.0.0/8", PROXY),
        ("http://[fd00::7]:8000", "fd00::/8", None),
        ("http://[::1]:8000", "[::1]", None),
        ("http://[fe80::1]:8000", "[::1]", PROXY),
        ("http://host", "*", None),
        ("http://host", "[::1], not a network/99", PROXY),
    ],
)
def test_hosts_that_are_listed_are_reached_directly(
    monkeypatch: pytest.MonkeyPatch, url: str, no_proxy: str, expected: str | None
) -> None:
    monkeypatch.setenv("http_proxy", PROXY)
    monkeypatch.setenv("no_proxy", no_proxy)

    assert proxy_for(url) == expected


def test_a_proxy_is_one_for_its_scheme_or_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "proxy:1")
    assert (proxy_for("https://host"), proxy_for("http://host")) == ("http://proxy:1", None)

    monkeypatch.setenv("all_proxy", "socks5://proxy:2")
    assert proxy_for("http://host") == "socks5://proxy:2"


@pytest.mark.parametrize("no_proxy", ["[::1]", "fd00::/8", "localhost,127.0.0.1,[::1],fd00::/8"])
def test_what_runners_list_makes_no_client_fail(
    monkeypatch: pytest.MonkeyPatch, no_proxy: str
) -> None:
    monkeypatch.setenv("HTTP_PROXY", PROXY)
    monkeypatch.setenv("NO_PROXY", no_proxy)

    assert Client("http://host:8000").base_url == "http://host:8000"
