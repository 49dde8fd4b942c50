"""Product code that is ordinary and was not foreseen: classes asked as objects, paths, records, many threads."""

import argparse
import asyncio
import collections
import concurrent.futures
import enum
import logging
import pathlib
import threading
import types
import warnings
from collections import deque
from functools import wraps


class Place(pathlib.PosixPath):
    def loud(self):
        return str(self).upper()


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"

    @classmethod
    def default(cls):
        return cls.RED

    @staticmethod
    def names():
        return [member.name for member in Colour]

    @classmethod
    def _missing_(cls, value):
        return next((member for member in cls if member.value == str(value).lower()), None)


class Registry(type):
    known = ("a", "b")

    def __len__(cls):
        return len(cls.known)

    def __iter__(cls):
        return iter(cls.known)

    def __contains__(cls, name):
        return name in cls.known

    def __getitem__(cls, name):
        return name * 2


class Registered(metaclass=Registry):
    pass


class Plain:
    pass


class Tally(collections.Counter):
    pass


def denied():
    raise PermissionError(13, "denied", "/a", None, "/b")


def ranked(items):
    return sorted(items, key=lambda item: item.rank)


def told():
    logging.getLogger("ordinary").warning("bad", extra={"request": 7})


def shown(record):
    return logging.Formatter("%(levelname)s:%(message)s").format(record)


def old():
    warnings.warn("old", DeprecationWarning, stacklevel=2)


def crowd(function, threads, calls):
    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        return list(pool.map(function, range(calls)))


async def later():
    await asyncio.sleep(0)
    return 1


def run(coroutine):
    return asyncio.run(coroutine)


class Account:
    @property
    def balance(self):
        return 1


def parsed(words):
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int)
    return parser.parse_args(words)


def bag(**values):
    return types.SimpleNamespace(**values)


def twice(function):
    @wraps(function)
    def call(*words):
        return deque([function(*words), function(*words)], maxlen=2)

    return call


class Shared:
    def __init__(self):
        self.value, self.lock = 0, threading.Lock()

    def add(self):
        with self.lock:
            self.value += 1


class Typed:
    count: int = 1
    name: "str"
