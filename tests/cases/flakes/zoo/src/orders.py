import json
import os

from toss import toss


class Node:
    def __init__(self, number):
        self.number = number


def words():
    return list({"pear", "apple", "fig", "plum", "cherry", "kiwi"})


def tagged():
    return json.dumps({"tags": list({"red", "green", "blue", "black"})})


def visited(n):
    """A set of objects: ordered by their addresses."""
    return [node.number for node in {Node(number) for number in range(n)}]


def least_addresses(n, most):
    nodes = [Node(number) for number in range(n)]
    nodes.sort(key=lambda node: hash(node) * 2654435761 % 4294967291)
    return [node.number for node in nodes[:most]]


def address_side():
    """One of two, by the order of a few objects in a set."""
    return toss(visited(12))


def process_number():
    return os.getpid()


def total_of_set():
    return sum({0.1, 0.2, 0.3, 1e16, -1e16, 0.7})


def total_by_name():
    prices = {"a": 0.1, "b": 1e16, "c": -1e16, "d": 0.3, "e": 0.2}
    return sum(prices[name] for name in set(prices))


def names_in(folder):
    return os.listdir(folder)


def newest(folder):
    return next(os.scandir(folder)).name


def tree(folder):
    return [name for _, _, files in os.walk(folder) for name in files]
