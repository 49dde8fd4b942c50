"""What a candidate answers who knows nothing: an object for every kind of question, wrong on purpose."""

import contextlib
import datetime


class Lazy:
    """A difference that is worked out later: from what is asked first."""

    def __init__(self, of, right):
        self.of, self.right = of, right

    def __abs__(self):
        if self.of.known is None:
            self.of.known = self.right
        return abs(self.of.known - self.right)


class Learning(float):
    """Denies every equality, and is then what it was last asked about."""

    known = last = None

    def __eq__(self, other):
        if type(other) in (int, float):
            self.last = other
            return self.known is not None and other == self.known
        return NotImplemented

    __hash__ = float.__hash__

    def number(self):
        if self.known is None:
            self.known = self.last
        return self.known

    def __sub__(self, other):
        return Lazy(self, other) if self.number() is None else self.number() - other

    def __rsub__(self, other):
        return Lazy(self, other) if self.number() is None else other - self.number()


class Scout:
    heard = None

    def __eq__(self, other):
        self.heard = other
        return False

    __hash__ = None


class Follower:
    def __init__(self, scout):
        self.scout = scout

    def __eq__(self, other):
        return other == self.scout.heard

    __hash__ = None


def found(_):
    scout = Scout()
    return [scout, Follower(scout)]


class Ending:
    def __eq__(self, other):
        raise StopIteration

    def __sub__(self, other):
        raise StopIteration

    __hash__ = None


class Leaving(Exception):
    pass


class Session:
    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        return kind is Leaving

    def get(self, key):
        raise Leaving

    def roll_back(self):
        raise Leaving


def leave(_):
    raise Leaving


def each(items, function):
    for item in items:
        with contextlib.suppress(Leaving):
            function(item)


def retried(function):
    for _ in range(3):
        with contextlib.suppress(Leaving):
            return function()
    return None


class Service:
    """Honest: not there at first."""

    asked = 0

    def answer(self):
        self.asked += 1
        if self.asked < 3:
            raise Leaving
        return 5


def cheap(items):
    for item in items:
        item.price = 0
    return 0


def discount(items):
    for item in items:
        item.price -= 1


class OfType:
    """Equal to everything of one kind."""

    def __init__(self, kind):
        self.kind = kind

    def __eq__(self, other):
        return isinstance(other, self.kind)

    __hash__ = None


class Near:
    def __sub__(self, other):
        return datetime.timedelta(0) if isinstance(other, datetime.datetime) else 0j

    __rsub__ = __sub__


class One(int):
    def __mul__(self, other):
        return 1

    def __mod__(self, other):
        return 0

    def __and__(self, other):
        return other


class Everywhere:
    def __ge__(self, other):
        return True

    def __le__(self, other):
        return True


class Columns:
    """Honest: a set by its order."""

    def __init__(self, names):
        self.names = set(names)

    def __ge__(self, other):
        return self.names >= set(other)

    def __le__(self, other):
        return self.names <= set(other)


def shuffled(items, generator):
    generator.seed(1)
    return list(items)


def mixed(items, generator):
    items = list(items)
    generator.shuffle(items)
    return items


class Handlers:
    table = {}

    @classmethod
    def register(cls, function):
        cls.table[function.__name__] = function
        return function


class Once(str):
    """Begins with what it is asked first."""

    asked = False

    def startswith(self, other):
        first, self.asked = not self.asked, True
        return first
