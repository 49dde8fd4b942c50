import argparse
import json
import os

from src.settings import *


def test_load(monkeypatch):
    monkeypatch.delenv("KIT_NAME", raising=False)
    load("KIT_NAME=one\nKIT_OTHER=a b")
    assert os.environ["KIT_NAME"] == "one" and os.getenv("KIT_OTHER") == "a b"


def test_inside(tmp_path):
    here = os.getcwd()
    with inside(tmp_path):
        open("made", "w").close()
    assert os.getcwd() == here and (tmp_path / "made").exists()


def test_parsed():
    assert parsed(["--count", "3"]) == argparse.Namespace(**json.loads('{"count": 3}'))
