"""A kit of small things."""
import enum


class Place:
    pass


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


def ranked(players):
    """Players by rank."""
    return players


def crowd(function, count):
    """What a function says to 0, 1, 2, ..."""
    return [function(0)]


def old():
    """Warns its caller."""


def told(request):
    """Logs a request."""


def opened(path):
    """Opens what must be there."""


def run(coroutine):
    """What a coroutine comes to."""
