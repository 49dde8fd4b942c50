"""The product's process of a split part: from a fresh fork to serving what the oracle asks of it.

It has no pytest, no record pipe and no view of the sealed tests; what it knows of the attempt is the environment that
the tests would have given it. It says that it is ready, one byte to PID 1, once every privilege is gone and before it
hears its order, let alone runs code of the repository; after that this process is the candidate's, and nothing that it
says is believed.
"""

import os
from typing import NoReturn

from . import boot, environ, mutate, placement, scatter, seeds, source_only
from .confine import confine
from .counts import Meter
from .layout import Layout
from .null import SWITCH
from .orders import Policy
from .source import Sides
from .split import foreign
from .split.serve import serve
from .task import Place, ProductTask


def run(descriptors: list[int], layout: Layout, policy: Policy) -> NoReturn:
    order, ready, output, *links = descriptors
    os.setsid()
    ready, *links, order = boot.arrange(output, (ready, *links, order))
    place = Place.read(order)
    os.chdir(layout.tree)
    meter = Meter(layout.counts, place.uids)
    meter.leave_imports_out()
    confine(place.uid)
    boot.environment(environ.of_waiting(layout, policy))
    boot.streams()
    source_only.install(layout)
    known = foreign.known(layout)
    boot.say_ready(ready)
    told = ProductTask.decode(boot.read_order(order))
    os.close(order)
    placement.here(told.cpu)
    boot.environment(environ.of_product(layout, policy, told))
    source_only.give_way(layout, policy)
    seeds.apply(told.seed)
    source_only.plant(mutate.of_product(told.product, told.seed, layout, policy), Sides(layout, policy))

    def case(seed: int) -> None:
        SWITCH.arm()
        scatter.scatter()
        seeds.apply(seed)  # as the oracle's process does before each case

    serve(links, case, meter, known)
