"""Who raised: tracebacks to the side that is to blame or to thank.

A file is the product's when it lies under a src root, the sealed side's when it lies elsewhere in the tree (or under
a sealed root within a src root); everything else (standard library, dependencies, pytest) belongs to neither.
"""

from collections.abc import Iterator
from types import FrameType, TracebackType

from .layout import Layout
from .orders import Policy

SEALED, PRODUCT, RUNNER = "sealed", "product", "runner"


class Sides:
    def __init__(self, layout: Layout, policy: Policy) -> None:
        self._tree = f"{layout.tree}/"
        marked: list[tuple[str, str]] = [(f"{layout.srcfiles}/", PRODUCT)]
        marked += [(f"{layout.tree}/{root}", PRODUCT) for root in policy.src_roots]
        marked += [(f"{layout.tree}/{root}", SEALED) for root in policy.sealed_roots]
        self._marked = sorted(marked, key=lambda item: -len(item[0]))  # the longest prefix decides

    def marked(self) -> list[tuple[str, str]]:
        """Prefixes of files and whose they are; the longest decides."""
        return [*self._marked, (self._tree, SEALED)]

    def of_file(self, path: str) -> str | None:
        for prefix, side in self._marked:
            if path == prefix or (prefix.endswith("/") and path.startswith(prefix)):
                return side
        return SEALED if path.startswith(self._tree) else None

    def of_frame(self, frame: FrameType) -> str | None:
        side = self.of_file(frame.f_code.co_filename)
        if side is None:  # code made by `exec` belongs to the module whose globals it has
            file = frame.f_globals.get("__file__")
            side = self.of_file(file) if type(file) is str else None
        return side

    def of_exception(self, error: BaseException) -> str:
        """`product` when any frame it passed through is the product's, or it came from its process; else `sealed`, else
        `runner`."""
        if vars(error).get("__tribunal_product__") is True:
            return PRODUCT
        seen = {self.of_frame(frame) for frame in frames(error.__traceback__)}
        if PRODUCT in seen:
            return PRODUCT
        return SEALED if SEALED in seen else RUNNER


def frames(trace: TracebackType | None) -> Iterator[FrameType]:
    while trace is not None:
        yield trace.tb_frame
        trace = trace.tb_next
