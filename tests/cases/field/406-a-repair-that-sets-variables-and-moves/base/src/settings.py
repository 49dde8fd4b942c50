"""Settings from text, and a folder to work in."""


def load(text):
    raise NotImplementedError


def inside(folder):
    raise NotImplementedError


def parsed(words):
    raise NotImplementedError
