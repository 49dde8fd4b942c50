import asyncio
import pathlib

import pytest

from src import kit


class Player:
    def __init__(self, rank):
        self.rank = rank


def test_place():
    place = kit.Place("/a") / "b"
    assert place == pathlib.Path("/a/b") and place.name == "b" and place.loud() == "/A/B"


def test_colour():
    assert kit.Colour.default() is kit.Colour.RED and kit.Colour("BLUE") is kit.Colour.BLUE
    with pytest.raises(ValueError):
        kit.Colour("green")


def test_ranked():
    one, two = Player(1), Player(2)
    assert kit.ranked([two, one]) == [one, two]


def test_crowd():
    assert kit.crowd(lambda number: number * 2, 12) == [number * 2 for number in range(12)]


def test_old():
    with pytest.warns(DeprecationWarning, match="old") as caught:
        kit.old()
    assert caught[0].filename == __file__


def test_told(caplog):
    kit.told(7)
    assert caplog.records[0].request == 7


def test_opened(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        kit.opened(tmp_path / "x")
    assert caught.value.filename == str(tmp_path / "x")


def test_run():
    async def four():
        await asyncio.sleep(0)
        return 4

    assert kit.run(four()) == 4
