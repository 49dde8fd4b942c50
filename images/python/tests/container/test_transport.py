"""Cassettes replayed to real clients in real rooms, and what the product can do about it: nothing.

urllib and curl are in every image; requests, httpx and aiohttp are tried where the image has them (tests/clients), and
always by the server's own test of the recorder.
"""

import base64
import hashlib
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from room import IMAGE, Attempt, Room, lay

CLIENTS = {
    "urllib": """
import urllib.request
def get(url):
    with urllib.request.urlopen(url, timeout=10) as answer:
        return answer.status, answer.read().decode()
""",
    "curl": """
import subprocess
def get(url):
    done = subprocess.run(["curl", "-sS", "-w", "%{http_code}", url], env={}, capture_output=True, text=True, timeout=10)
    assert done.returncode == 0, done.stderr
    return int(done.stdout[-3:]), done.stdout[:-3]
""",
    "requests": """
import requests
def get(url):
    answer = requests.get(url, timeout=10)
    return answer.status_code, answer.text
""",
    "httpx": """
import httpx
def get(url):
    answer = httpx.get(url, timeout=10)
    return answer.status_code, answer.text
""",
    "aiohttp": """
import aiohttp, asyncio
def get(url):
    async def fetch():
        async with aiohttp.ClientSession() as session, session.get(url) as answer:
            return answer.status, await answer.text()
    return asyncio.run(fetch())
""",
}
CASE = """
import client

def test_http():
    assert client.get("http://api.example.org/rates/usd?day=1") == (200, "1.08")

def test_https():
    assert client.get("https://api.example.org/rates/usd?day=1") == (200, "1.08")

def test_port():
    assert client.get("https://api.example.org:8443/rates/usd?day=1") == (200, "1.08")

def test_miss():
    try:
        client.get("https://api.example.org/another")
    except Exception:
        pass

def test_without():
    try:
        client.get("http://api.example.org/rates/usd?day=1")
    except Exception:
        return
    raise AssertionError("there is no network")
"""
FILE = "tests/sealed/test_rates.py"
NETWORK = ("--dns", "127.0.0.1", "--dns-search", ".", "--sysctl", "net.ipv4.ip_unprivileged_port_start=0")
BODY = b"1.08"
RATE = {
    "method": "GET", "host": "api.example.org", "path": "/rates/usd", "query": "day=1", "status": 200,
    "headers": {"content-type": "text/plain"}, "body_sha256": hashlib.sha256(BODY).hexdigest(),
}  # fmt: skip


def present(name: str) -> bool:
    if name in ("urllib", "curl"):
        return True
    command = ["docker", "run", "--rm", "--entrypoint", "/usr/bin/test", IMAGE, "-d", f"/opt/tribunal/deps/{name}"]
    return subprocess.run(command, check=False).returncode == 0


@pytest.fixture
def rooms(tmp_path: Path) -> Iterator[Any]:
    with ExitStack() as held:

        def run(files: Mapping[str, str], cassettes: Mapping[str, list[dict[str, Any]]], **policy: Any) -> Room:
            room = held.enter_context(Room(lay(tmp_path / "tree", files), policy, options=NETWORK))
            answer = room.configure(transport={"ports": [8443]})
            assert answer["type"] == "configured", answer
            data = base64.b64encode(BODY).decode()
            room.send({"type": "body", "sha256": RATE["body_sha256"], "data": data, "more": False})
            for node, http in cassettes.items():
                room.send({"type": "cassette", "node": node, "clock": None, "seed": None, "fs": {}, "http": http})
            return room

        yield run


def cassette(attempt: Attempt, node: str) -> tuple[list[str], list[str]]:
    told = attempt.frames[node]["cassette"]
    return told["used"], told["misses"]


@pytest.mark.parametrize("name", CLIENTS)
@pytest.mark.parametrize("isolation", ["split", "shared"])
def test_every_client_is_answered(rooms: Any, name: str, isolation: str) -> None:
    if not present(name):
        pytest.skip(f"{IMAGE} has no {name}: the recorder's test has")
    files = {"src/client.py": CLIENTS[name], FILE: CASE}
    policy = {"shared": []} if isolation == "split" else {}
    port = RATE | {"host": "api.example.org:8443"}
    cassettes = {
        f"{FILE}::test_http": [RATE], f"{FILE}::test_https": [RATE], f"{FILE}::test_port": [port],
        f"{FILE}::test_miss": [RATE],
    }  # fmt: skip
    room = rooms(files, cassettes, **policy)
    for number in range(2 if isolation == "split" else 1):
        attempt = room.attempt(number)
        assert set(attempt.outcomes().values()) == {"passed"}, attempt.failures()
        for node in ("test_http", "test_https", "test_port"):
            assert cassette(attempt, f"{FILE}::{node}") == (["http:GET /rates/usd"], []), node
        assert cassette(attempt, f"{FILE}::test_miss") == ([], ["http:GET api.example.org/another"])
        assert attempt.frames[f"{FILE}::test_without"].get("cassette") is None


HOSTILE = '''
import ctypes, os, signal, socket, threading, time

def pids():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]

def transport():
    for pid in pids():
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                if b"/opt/tribunal/bin/transport" in file.read():
                    return pid
        except OSError:
            pass
    raise AssertionError("it is not there")

def kill():
    told = []
    for number in (signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM):
        try:
            os.kill(transport(), number)
            told.append("killed")
        except PermissionError:
            told.append("refused")
    return told

def look():
    told = []
    for name in ("fd/0", "fd/1", "mem", "environ"):
        try:
            os.open(f"/proc/{transport()}/{name}", os.O_RDWR if name != "environ" else os.O_RDONLY)
            told.append(name)
        except OSError:
            pass
    if ctypes.CDLL(None).ptrace(16, transport(), 0, 0) == 0:
        told.append("ptrace")
    return told

def bind():
    told = []
    for place in (("127.0.0.1", 80), ("127.0.0.1", 443), ("0.0.0.0", 443), ("127.0.0.1", 8443)):
        for option in (None, socket.SO_REUSEADDR, socket.SO_REUSEPORT):
            sock = socket.socket()
            if option:
                sock.setsockopt(socket.SOL_SOCKET, option, 1)
            try:
                sock.bind(place)
                sock.listen()
                told.append((place, option))
            except OSError:
                pass
            sock.close()
    names = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    names.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    try:
        names.bind(("127.0.0.1", 53))
        told.append("names")
    except OSError:
        pass
    return told

def write():
    told = []
    for path in ("/etc/resolv.conf", "/etc/hosts", "/run/tribunal/etc/authority.crt", "/run/tribunal/etc/ca-certificates.crt"):
        try:
            open(path, "a").close()
            told.append(path)
        except OSError:
            pass
    return told

def away():
    told = []
    for place in (("10.0.0.1", 80), ("8.8.8.8", 53), ("169.254.169.254", 80), ("172.17.0.1", 22)):
        sock = socket.socket()
        sock.settimeout(2)
        try:
            sock.connect(place)
            told.append(place)
        except OSError:
            pass
        sock.close()
    return told

def flood():
    """Everything a client can do to a server: connections, rubbish, large bodies, half handshakes."""
    held = []
    for number in range(600):
        sock = socket.socket()
        sock.settimeout(0.2)
        try:
            sock.connect(("127.0.0.1", (80, 443, 8443)[number % 3]))
            sock.send([b"\\x16\\x03\\x01\\x02\\x00\\x01", b"GET / HTTP/1.1\\r\\n", b"\\xff" * 5000,
                       b"POST / HTTP/1.1\\r\\nhost: a\\r\\ncontent-length: 99999999999\\r\\n\\r\\n" + b"x" * 100000][number % 4])
            held.append(sock)
        except OSError:
            pass
    for sock in held:
        sock.close()
    return True
'''


@pytest.mark.parametrize("isolation", ["split", "shared"])
def test_the_product_cannot_reach_it_but_as_a_client(rooms: Any, isolation: str) -> None:
    case = """
import urllib.request
import hostile

def usd():
    with urllib.request.urlopen("https://api.example.org/rates/usd?day=1", timeout=10) as answer:
        return answer.read()

def test_kill():
    assert list(hostile.kill()) == ["refused"] * 3
    assert usd() == b"1.08"

def test_look():
    assert list(hostile.look()) == []
    assert usd() == b"1.08"

def test_bind():
    assert list(hostile.bind()) == []
    assert usd() == b"1.08"

def test_bind_without():
    assert list(hostile.bind()) == []

def test_write():
    assert list(hostile.write()) == []

def test_away():
    assert list(hostile.away()) == []

def test_flood():
    assert hostile.flood()

def test_after_the_flood():
    assert usd() == b"1.08"
"""
    policy = {"shared": []} if isolation == "split" else {}
    nodes = ("kill", "look", "bind", "flood", "after_the_flood")
    room = rooms({"src/hostile.py": HOSTILE, FILE: case}, {f"{FILE}::test_{node}": [RATE] for node in nodes}, **policy)
    attempt = room.attempt()
    assert set(attempt.outcomes().values()) == {"passed"}, attempt.failures()
    for node in ("kill", "look", "bind", "after_the_flood"):
        assert cassette(attempt, f"{FILE}::test_{node}") == (["http:GET /rates/usd"], []), node
    used, misses = cassette(attempt, f"{FILE}::test_flood")
    assert used == [] and misses and "transport:gone" not in misses


def test_one_that_is_gone_is_replaced(rooms: Any) -> None:
    room = rooms({"src/client.py": CLIENTS["urllib"], FILE: CASE}, {f"{FILE}::test_https": [RATE]}, shared=[])
    for number in range(2):
        attempt = room.attempt(number, only=[f"{FILE}::test_https"])
        assert set(attempt.outcomes().values()) == {"passed"}, attempt.failures()
        assert cassette(attempt, f"{FILE}::test_https") == (["http:GET /rates/usd"], [])
        kill = "for d in /proc/[0-9]*; do grep -qa bin/transpor[t] $d/cmdline && kill -9 ${d#/proc/}; done; true"
        subprocess.run(["docker", "exec", room.name, "/bin/sh", "-c", kill], check=True)


def test_a_room_without_cassettes_has_nothing_of_it(tmp_path: Path) -> None:
    case = """
import os
def test_nothing():
    lines = [open(f"/proc/{name}/cmdline").read() for name in os.listdir("/proc") if name.isdigit()]
    assert not [line for line in lines if "transport" in line]
    assert not os.path.exists("/run/tribunal/etc/authority.crt")
    assert "SSL_CERT_FILE" not in os.environ
    assert open("/etc/ssl/certs/ca-certificates.crt").read().count("BEGIN CERTIFICATE") > 100
"""
    with Room(lay(tmp_path / "tree", {FILE: case})) as room:
        assert room.configure()["type"] == "configured"
        attempt = room.attempt()
        assert set(attempt.outcomes().values()) == {"passed"}, attempt.failures()
