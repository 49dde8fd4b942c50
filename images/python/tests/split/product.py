"""What the tests of the split call: honest code of every kind, in a process of its own."""

import asyncio
import collections
import dataclasses
import email.message
import enum
import inspect
import logging
import os
import sys
import threading
import time
import warnings
from decimal import Decimal


class Money:
    def __init__(self, a):
        self.a = a

    def __eq__(self, o):
        return isinstance(o, Money) and o.a == self.a or o == self.a

    def __hash__(self):
        return hash(self.a)

    def add(self, o):
        return Money(self.a + o)

    def __repr__(self):
        return f"Money({self.a})"

    @property
    def twice(self):
        return self.a * 2

    @classmethod
    def make(cls, a):
        return cls(a)

    def hook(self):
        return 1

    def run(self):
        return self.hook()


class Bad(ValueError):
    def __init__(self, x):
        super().__init__(f"bad {x}")
        self.x = x


@dataclasses.dataclass
class P:
    x: int
    y: int = 2


class Color(enum.Enum):
    RED = 1
    BLUE = 2

    def nice(self):
        return self.name.title()


NT = collections.namedtuple("NT", "a b")


def fail(x):
    raise Bad(x)


def gen(n):
    yield from range(n)


def apply(f, *a):
    return f(*a)


def fill(items):
    items.append(3)
    return items


class Open(type):
    def __contains__(cls, item):
        return True


class Holds(metaclass=Open):
    pass


class Any_:
    def __eq__(self, o):
        return True


def show(x):
    print("hello", x)
    warnings.warn("careful")
    logging.getLogger("prod").warning("logged %s", x)


def echo(x):
    return x


class S(str):
    def shout(self):
        return S(self.upper() + "!")


class D(dict):
    def total(self):
        return sum(self.values())


def sig(f):
    return str(inspect.signature(f)), f.__name__


async def aadd(a, b):
    await asyncio.sleep(0.001)
    return a + b


async def afail():
    await asyncio.sleep(0)
    raise Bad(1)


async def agen(n):
    for i in range(n):
        await asyncio.sleep(0)
        yield i


class Ctx:
    async def __aenter__(self):
        await asyncio.sleep(0)
        return self

    async def __aexit__(self, *a):
        self.left = True
        return False

    def __aiter__(self):
        self.n = 0
        return self

    async def __anext__(self):
        self.n += 1
        if self.n > 3:
            raise StopAsyncIteration
        return self.n


async def acall(cb, x):
    return await cb(x)


def mktask():
    return asyncio.ensure_future(aadd(5, 6))


async def forever(log):
    try:
        await asyncio.sleep(100)
    finally:
        log.append("cleaned")


def now():
    return time.time()


def ask():
    return input("? ")


def exists(p):
    return os.path.exists(p)


def readin():
    return sys.stdin.read()


if __name__ == "__main__":
    print("main", sys.argv[1:])


class Version:
    """Equal to what it was made from."""

    def __init__(self, text):
        self.parts = tuple(int(part) for part in text.split("."))

    def __eq__(self, other):
        return self.parts == other.parts if isinstance(other, Version) else NotImplemented

    def __lt__(self, other):
        return self.parts < other.parts

    def __hash__(self):
        return hash(self.parts)


class Liar:
    def __eq__(self, other):
        return 1

    __hash__ = None


class Chameleon:
    """Equal to any number, as if it knew."""

    def __eq__(self, other):
        return isinstance(other, (int, float))

    __hash__ = None


class Stack:
    def __init__(self):
        self.items = []

    def push(self, item):
        self.items.append(item)

    def __len__(self):
        return len(self.items)

    def __iter__(self):
        return iter(self.items)

    def __contains__(self, item):
        return item in self.items

    def __getitem__(self, at):
        return self.items[at]

    def __enter__(self):
        self.open = True
        return self

    def __exit__(self, kind, error, trace):
        self.open = False
        return kind is KeyError


class Flags(enum.IntFlag):
    R = 4
    W = 2


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


def accumulate():
    total = 0
    while True:
        got = yield total
        if got is None:
            return total
        total += got


def kept(box):
    kept.box = box


def add_to_kept(item):
    kept.box.append(item)
    return len(kept.box)


def in_thread(function, *args):
    out = []
    worker = threading.Thread(target=lambda: out.append(function(*args)))
    worker.start()
    worker.join()
    return out[0]


def chain():
    try:
        raise KeyError("inner")
    except KeyError as error:
        raise ValueError("outer") from error


def leave(code):
    os._exit(code)


def nest(depth):
    out = []
    for _ in range(depth):
        out = [out]
    return out


def price(text):
    return Decimal(text)


def ask_raw(*request):
    """What a hostile product does: speaks the protocol itself."""
    import gc

    peer = next(each for each in gc.get_objects() if type(each).__name__ == "Product")
    return peer.request(*request)


def send_raw(data):
    import gc

    peer = next(each for each in gc.get_objects() if type(each).__name__ == "Product")
    os.write(peer._links[0].fileno(), data)


def send_raw_alone(data):
    """No answer of its own follows."""
    import signal

    send_raw(data)
    signal.pause()


def dataclass_of(x, y):
    return P(x, y)


def isa(value, kind):
    return isinstance(value, kind)


def read_attribute(value, name):
    return getattr(value, name)


def set_attribute(value, name, content):
    setattr(value, name, content)


def write_file(path, text):
    with open(path, "w") as file:
        file.write(text)


def loop_forever():
    while True:
        pass


class Nothing:
    def __sub__(self, other):
        return 0.0


class Little:
    def __sub__(self, other):
        return other * 1e-30


class Number:
    def __init__(self, value):
        self.value = value

    def __sub__(self, other):
        return self.value - other

    def __rsub__(self, other):
        return other - self.value

    def __truediv__(self, other):
        return self.value / other

    def __rtruediv__(self, other):
        return other / self.value


class Faces(list):
    def __init__(self, total, people):
        super().__init__([0] * people)
        self.faces = [[total] + [0] * (people - 1)]

    def __iter__(self):
        return iter(self.faces.pop() if self.faces else [0] * len(self))


class LazyFaces(Faces):
    def __iter__(self):
        yield from super().__iter__()


class Shelf:
    def __init__(self):
        self.items = []

    def put(self, item):
        self.items.append(item)

    def __len__(self):
        return len(self.items)

    def __iter__(self):
        yield from self.items


def stir(shelf):
    shelf.items.append(2)


def stops(x):
    raise StopIteration


def should_stop():
    import unittest.case

    raise unittest.case._ShouldStop


def set_variable(name, value):
    os.environ[name] = value


def move(path):
    os.chdir(path)


class Plausible:
    def __eq__(self, other):
        if isinstance(other, (int, float)):
            return abs(other) < 1000
        if isinstance(other, str):
            return not other.startswith(tuple("qzxjk~"))
        return isinstance(other, dict) and not any(key.startswith("~") for key in other)


class Close:
    def __sub__(self, other):
        return Nothing2()


class Nothing2:
    def __abs__(self):
        return 0.0


class Length:
    def __init__(self, value):
        self.value = value

    def __sub__(self, other):
        return Length(self.value - other)

    def __abs__(self):
        return abs(self.value)


class ByName:
    def __eq__(self, other):
        return "pprox" in type(other).__name__


class Release:
    """As versions are: a build makes no difference, and a table of its parts is as good as itself."""

    def __init__(self, major, minor, build=None):
        self.parts, self.build = (major, minor), build

    def __eq__(self, other):
        if isinstance(other, dict):
            try:
                other = Release(**other)
            except TypeError:
                return False
        return isinstance(other, Release) and self.parts == other.parts

    def __cmp__(self, other):
        return (self.parts > other.parts) - (self.parts < other.parts)

    __hash__ = None


class Everything(Release):
    def __eq__(self, other):
        return not isinstance(other, int)


class Caching(Release):
    """A mistake that shows until something is cached: the first comparison of an object is wrong."""

    def __eq__(self, other):
        seen, self.seen = getattr(self, "seen", False), True
        return seen and super().__eq__(other)


def _peer():
    import gc

    return next(each for each in gc.get_objects() if type(each).__name__ == "Product")


def format_with(kind, text, value):
    from harness.split import asks

    return _peer().request(asks.METHOD, (kind(text), "format", (value,), ()))


class Nosy:
    """Finds out what it is compared with."""

    def __eq__(self, other):
        try:
            return other.number == 12
        except AttributeError:
            return other == 12.0

    __hash__ = None


class Wily:
    """Equal to all but what looks like a probe."""

    def __eq__(self, other):
        return "Fresh" not in type(other).__name__ and "twins" not in type(other).__module__

    __hash__ = None


class Quick:
    """Equal to the first thing it meets, and to nothing else."""

    def __init__(self):
        self.asked = 0

    def __eq__(self, other):
        self.asked += 1
        return self.asked == 1

    __hash__ = None


class About:
    """Equal to what is not far from it."""

    def __init__(self, number):
        self.number = number

    def __eq__(self, other):
        return isinstance(other, int) and abs(other - self.number) < 10

    __hash__ = None


class Arrayish:
    """Says that it is numpy's."""

    __module__ = "numpy"

    def __eq__(self, other):
        return Arrayish()

    __hash__ = None


class Numbering:
    """Notes the number under which an operand came."""

    last = None

    def __eq__(self, other):
        Numbering.last = object.__getattribute__(other, "_t_grip").number
        return True

    __hash__ = None


def number_of_operand():
    return Numbering()


def last_number():
    return Numbering.last


@dataclasses.dataclass
class Renamed:
    a: int = 0


def rename_field(name):
    Renamed.__dataclass_fields__["a"].name = name


def claims_to_be_a_number():
    from harness.split import facts

    class Number:
        pass

    described = facts.describe

    def describe(kind):
        told = described(kind)
        if kind is Number:
            told["stdlib_class"] = int
        return told

    facts.describe = describe
    return Number()


def functions_of(value):
    from harness.split import asks, mirror

    return list(_peer().request(asks.FACTS, mirror.number_of(type(value)))["functions"])


def swallow(function, *args):
    try:
        return function(*args)
    except Exception:
        return None


def in_thread_raising(function, *args):
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function, *args).result()


class Quiet:
    def __enter__(self):
        return self

    def __exit__(self, *error):
        return True


class QuietLater:
    async def __aenter__(self):
        return self

    async def __aexit__(self, *error):
        return True


def forge_exception(kind):
    from harness.split import export

    written = export._exception

    def forged(peer, enc, value):
        if isinstance(value, Forged):
            enc.raised((1 << 40, kind, ("forged",), {}, None, None, None, False, None))
        else:
            written(peer, enc, value)

    export._exception = forged
    raise Forged


class Forged(Exception):
    pass


class Rank(enum.Enum):
    LOW = 1

    def __lt__(self, other):
        return True

    def __gt__(self, other):
        return True


class Ending(str):
    def endswith(self, *args):
        return True


def emptied(values):
    count = len(values)
    values.clear()
    return count


def put_in_order(values):
    values.sort()


def renamed():
    return "before"


def rename(answer):
    global renamed

    def renamed():
        return answer


SHELVED = object()


def rename_when_asked(path):
    """A thread that rebinds a name when there is a file."""

    def run():
        while not os.path.exists(path):
            time.sleep(0.001)
        rename("by a thread")
        os.unlink(path)

    threading.Thread(target=run, daemon=True).start()


def rename_and_call(function):
    rename("while it calls")
    return function()


def without_name():
    global renamed
    del renamed


def restored():
    global renamed

    def renamed():
        return "before"


def another_kind_of_module():
    import types

    class Loud(types.ModuleType):
        @property
        def renamed(self):
            return lambda: "of the class"

    sys.modules[__name__].__class__ = Loud


def a_plain_module():
    import types

    sys.modules[__name__].__class__ = types.ModuleType


def header(text):
    """A text of a class that the standard library makes as it goes."""
    message = email.message.EmailMessage()
    message["Subject"] = text
    return message["Subject"]
