"""The product's process of a split part: from a fresh fork to serving what the oracle asks of it.

It has no pytest, no record pipe and no view of the sealed tests; what it knows of the attempt is the environment that
the tests would have given it. `booted` is one byte to PID 1, said once every privilege is gone and before any code of
the repository can run; after that this process is the candidate's, and nothing it says is believed.
"""

import os
from typing import NoReturn

from . import boot, environ, mutate, scatter, seeds, source_only
from .confine import confine
from .counts import Meter
from .layout import Layout
from .null import SWITCH
from .orders import Policy
from .source import Sides
from .split import foreign
from .split.serve import serve
from .task import ProductTask


def run(descriptors: list[int], layout: Layout, policy: Policy) -> NoReturn:
    order, booted, output, *links = descriptors
    os.setsid()
    told = ProductTask.decode(boot.read_order(order))
    booted, *links = boot.arrange(output, (booted, *links))
    os.chdir(layout.tree)
    meter = Meter(layout.counts, (told.uid,))
    meter.leave_imports_out()
    confine(told.uid)
    boot.environment(environ.of_product(layout, policy, told))
    boot.streams()
    source_only.install(layout, policy)
    seeds.apply(told.seed)
    os.write(booted, b"b")
    os.close(booted)
    source_only.plant(mutate.of_product(told.product, told.seed, layout, policy), Sides(layout, policy))

    def case(seed: int) -> None:
        SWITCH.arm()
        scatter.scatter()
        seeds.apply(seed)  # as the oracle's process does before each case

    serve(links, case, meter, foreign.known(layout))
