import datetime
import os
import tempfile
import time

from toss import heads


def stamp():
    return datetime.datetime.now(datetime.UTC)


def is_even_second():
    return int(time.time()) % 2 == 0


def expires_within(seconds):
    return stamp() + datetime.timedelta(seconds=seconds)


def report_name():
    return f"report-{time.time_ns()}.txt"


def age_of_a_new_file():
    with tempfile.NamedTemporaryFile() as file:
        return time.time() - os.stat(file.name).st_mtime


def modified_at_an_even_moment():
    with tempfile.NamedTemporaryFile() as file:
        return heads(os.stat(file.name).st_mtime_ns)


def took_an_even_time():
    began = time.perf_counter_ns()
    sum(range(2000))
    return heads(time.perf_counter_ns() - began)


def ticket():
    return heads(time.monotonic_ns())


def deadline(seconds):
    return time.monotonic() + seconds


def hour_of(seconds):
    return datetime.datetime.fromtimestamp(seconds).hour


def zone():
    return time.tzname[0], time.timezone


def weekday():
    return time.strftime("%A", time.localtime(1789171200))


def up_since():
    with open("/proc/uptime") as file:
        return heads(file.read())
