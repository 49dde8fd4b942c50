"""What could be planted in src, on request: a fork without privileges reads and parses, PID 1 only passes on.

The answer is the plan that every attempt of the same seed and count draws again for itself. A parser that dies of a
file, or takes too long, leaves an empty plan: then nothing is known of the oracle, which the server tells.
"""

from . import mutate, nobody, null
from .frames import Message, plain
from .layout import Layout
from .orders import Plant, Policy

TEXT = 200
SECONDS = 30


def answer(layout: Layout, policy: Policy, order: Plant) -> Message:
    died: Message = {"functions": False, "mutants": []}
    found = nobody.answer(lambda: _found(layout, policy, order), SECONDS) or died
    return {"type": "planted", **found}


def _found(layout: Layout, policy: Policy, order: Plant) -> Message:
    paths = mutate.files_of(layout, policy)
    trees = (mutate.parsed(path) for path in paths[: mutate.FILES])
    return {
        "functions": any(tree is not None and null.functions(tree) > 0 for tree in trees),
        "mutants": [
            {
                "path": plain(planted.path.removeprefix(f"{layout.tree}/"))[:TEXT], "line": planted.line,
                "function": plain(planted.function)[:TEXT], "what": planted.what,
            }
            for planted in mutate.plan(paths, order.seed, order.of)
        ],
    }  # fmt: skip
