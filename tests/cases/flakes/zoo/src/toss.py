"""A coin whose side is decided by one number, evenly: how a race or a clock decides a real flake."""

import zlib


def toss(number):
    return zlib.crc32(str(number).encode()) & 1


def heads(number):
    return toss(number) == 0
