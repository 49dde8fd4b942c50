import os
import random
import secrets
import tempfile
import uuid


def roll():
    return random.random()


def sample_mean(n):
    return sum(random.gauss(0, 1) for _ in range(n)) / n


def shuffled(items):
    items = list(items)
    random.shuffle(items)
    return items


def token():
    return secrets.token_bytes(1)[0]


def key():
    return uuid.uuid4().int & 1


def system_choice(items):
    return random.SystemRandom().choice(items)


def scratch_name():
    with tempfile.TemporaryDirectory() as folder:
        return os.path.basename(folder)


def device_byte():
    with open("/dev/urandom", "rb", 0) as device:
        return device.read(1)[0] & 1


def nonce_file():
    with open("/dev/random", "rb", 0) as device:
        return device.read(2).hex()
