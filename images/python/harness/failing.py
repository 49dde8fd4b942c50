"""The function of a canary, in a short file: a report of a failure reads the whole file that it lies in."""

from collections.abc import Callable


def failing(words: str) -> Callable[[], None]:
    def test() -> None:
        raise AssertionError(words)

    return test
