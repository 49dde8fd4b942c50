"""Sockets of every family."""

import fcntl
import socket
import struct

from .ways import WAYS, connected, way

# Sockets.

for name in [
    "/var/run/docker.sock",
    "/run/docker.sock",
    "/run/containerd/containerd.sock",
    "/run/podman/podman.sock",
    "/run/systemd/private",
    "\0docker",
    "\0/containerd-shim",
]:
    WAYS[f"connect {name.replace(chr(0), '@')}"] = lambda name=name: connected(name)
for name, family in {
    "packet": 17,
    "vsock": 40,
    "alg": 38,
    "key": 15,
    "bluetooth": 31,
    "tipc": 30,
    "xdp": 44,
    "can": 29,
    "rds": 21,
    "nfc": 39,
    "smc": 43,
    "kcm": 41,
    "appletalk": 5,
    "x25": 9,
}.items():
    WAYS[f"socket-{name}"] = lambda family=family: socket.socket(
        family, socket.SOCK_DGRAM if family not in (17, 15, 44) else socket.SOCK_RAW, 2 if family == 15 else 0
    ).close()
WAYS["socket-raw"] = lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP).close()
WAYS["socket-raw6"] = lambda: socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6).close()
for name, protocol in {
    "diag": 4,
    "audit": 9,
    "netfilter": 12,
    "uevent": 15,
    "generic": 16,
    "xfrm": 6,
    "connector": 11,
}.items():
    WAYS[f"netlink-{name}"] = lambda protocol=protocol: socket.socket(
        socket.AF_NETLINK, socket.SOCK_RAW, protocol
    ).close()


@way("named-sockets")
def named_sockets():
    with open("/proc/net/unix") as lines:
        names = [fields[7] for line in lines if len(fields := line.split()) > 7]
    return f"DONE {names}" if [name for name in names if name != "Path"] else "none"


@way("netlink-loopback-down")
def netlink_loopback_down():
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as kernel:
        kernel.settimeout(5)
        kernel.send(struct.pack("=IHHIIBBHiII", 32, 16, 5, 1, 0, 0, 0, 0, 1, 0, 1))
        error = struct.unpack_from("=i", kernel.recv(4096), 16)[0]
    if error:
        raise OSError(-error, "")


@way("loopback-down")
def loopback_down():
    with socket.socket() as any_socket:
        return fcntl.ioctl(any_socket, 0x8914, struct.pack("16sh22x", b"lo", 0))


@way("credentials-of-root")
def credentials_of_root():
    here, there = socket.socketpair()
    with here, there:
        return here.sendmsg([b"x"], [(socket.SOL_SOCKET, 2, struct.pack("iII", 1, 0, 0))])
