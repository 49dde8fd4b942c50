"""What `from product import *` may bring into a sealed file: names that are new there, and the product's own again.

A star would put what it likes in the place of a test's own names; that is told. What both have from the standard
library is left to the test, whatever the product says of it.
"""

from __future__ import annotations

import builtins
import types
from typing import TYPE_CHECKING, Any

from . import asks, remote
from .stdlib import is_standard

if TYPE_CHECKING:
    from .connect import Connection


def kept(connection: Connection, module: Any, names: Any, taken: dict[str, Any]) -> list[Any]:
    """The names that the star takes. Told is what would stand in the place of a test's own, of a built-in one, or where
    pytest looks."""
    out = []
    for name in names:
        if type(name) is not str or (name in taken and remote.is_products(taken[name])):
            out.append(name)  # one of its own for one of its own
            continue
        if name in taken and _is_the_same(connection, module, name, taken[name]):
            continue
        if name in taken or hasattr(builtins, name) or name.startswith("pytest"):
            connection.tamper("lied", f"a star import takes the name {name[:60]}")
        out.append(name)
    return out


def _is_the_same(connection: Connection, module: Any, name: str, own: Any) -> bool:
    """Whether a name means what the test has under it already. Where the product only says so, the test keeps its own
    all the same."""
    try:
        theirs = connection.request(asks.GETATTR, (module, name))
    except AttributeError:
        return False
    if theirs is own:
        return True
    facts = ("__name__",) if type(own) is types.ModuleType else ("__module__", "__qualname__")
    said = [getattr(own, fact, None) for fact in facts]
    return is_standard(said[0]) and said == [getattr(theirs, fact, None) for fact in facts]
