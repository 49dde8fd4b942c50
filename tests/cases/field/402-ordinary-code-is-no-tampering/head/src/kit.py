"""A kit of small things."""
import asyncio
import concurrent.futures
import enum
import logging
import pathlib
import warnings


class Place(pathlib.PosixPath):
    """A path that can shout."""

    def loud(self):
        return str(self).upper()


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"

    @classmethod
    def default(cls):
        return cls.RED

    @classmethod
    def _missing_(cls, value):
        return next((member for member in cls if member.value == str(value).lower()), None)


def ranked(players):
    """Players by rank."""
    return sorted(players, key=lambda player: player.rank)


def crowd(function, count):
    """What a function says to 0, 1, 2, ..."""
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        return list(pool.map(function, range(count)))


def old():
    """Warns its caller."""
    warnings.warn("old", DeprecationWarning, stacklevel=2)


def told(request):
    """Logs a request."""
    logging.getLogger("kit").warning("got one", extra={"request": request})


def opened(path):
    """Opens what must be there."""
    raise FileNotFoundError(2, "not there", str(path))


def run(coroutine):
    """What a coroutine comes to."""
    return asyncio.run(coroutine)
