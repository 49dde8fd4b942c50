"""Settings from text, and a folder to work in."""
import argparse
import contextlib
import json
import os


def load(text):
    """Puts NAME=VALUE lines into the environment."""
    for line in text.splitlines():
        name, _, value = line.partition("=")
        os.environ[name] = value


@contextlib.contextmanager
def inside(folder):
    """Works in a folder for a while."""
    before = os.getcwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def parsed(words):
    """Words of a command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int)
    return parser.parse_args(words)
