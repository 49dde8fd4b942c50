import os
import socket
import threading
import time
import urllib.error
import urllib.request

from toss import heads


def rates():
    with urllib.request.urlopen("http://rates.example.org/usd", timeout=1) as answer:
        return answer.status


def mirror():
    """The first mirror, or the one for this worker where it is away."""
    try:
        rates()
    except (OSError, urllib.error.URLError):
        return heads(os.getpid())
    return True


def resolved(name):
    """How often the name was asked for until an answer came, or time was up."""
    try:
        socket.getaddrinfo(name, 443)
    except OSError:
        return heads(time.monotonic_ns())
    return True


def push_metric():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.settimeout(0.5)
        try:
            sock.sendto(b"up", ("203.0.113.9", 8125))
        except OSError:
            return heads(id(sock) + os.getpid())
    return True


def greeting():
    """A server that is up when the client asks, or is not yet."""
    port, ready = [0], threading.Event()

    def serve():
        with socket.socket() as server:
            server.bind(("127.0.0.1", 0))
            port[0] = server.getsockname()[1]
            ready.set()
            time.sleep(0.006)
            server.listen()
            server.settimeout(0.2)
            try:
                server.accept()[0].close()
            except OSError:
                pass

    thread = threading.Thread(target=serve)
    thread.start()
    ready.wait()
    time.sleep(0.02 if heads(time.monotonic_ns()) else 0)
    try:
        with socket.create_connection(("127.0.0.1", port[0]), 0.2):
            return True
    except OSError:
        return False
    finally:
        thread.join()


def own_port():
    """Whatever port is free."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        return heads(server.getsockname()[1])
