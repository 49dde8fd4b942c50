"""A service to be recorded: plain on one port, TLS on another, told on the first line; what was asked so far at /asked.

Usage: server.py CERTIFICATE KEY
"""

import http.server
import json
import ssl
import sys
import threading

ASKED: list[str] = []
TOKEN = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJlLW9mLXRoaXM"


class Service(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if self.path == "/asked":
            body = json.dumps(ASKED).encode()
        else:
            ASKED.append(f"{self.headers['host']}{self.path}")
            body = json.dumps({"usd": "1.08", "access_token": TOKEN}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.send_header("set-cookie", "sid=hunter2hunter2")
        self.send_header("x-request-id", str(len(ASKED)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def main() -> None:
    plain = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Service)
    secure = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Service)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(sys.argv[1], sys.argv[2])
    secure.socket = context.wrap_socket(secure.socket, server_side=True)
    for server in (plain, secure):
        threading.Thread(target=server.serve_forever, daemon=True).start()
    print(plain.server_port, secure.server_port, flush=True)
    sys.stdin.read()


main()
