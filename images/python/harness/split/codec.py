"""What crosses as bytes, for two processes of which one is hostile: the limits, the error, and what an end must know.

`encode` writes by *exact* type, so that a subclass never passes for its base; `decode` reads into exact built-in types,
and into what the hooks make of handles. Neither runs code that the bytes choose, imports a name or builds a class. Both
fail with `CodecError` alone, whatever the bytes are.

Layout: one tag byte, then a fixed-size or length-prefixed body, little-endian. A container carries its number in the
`Space` of the link; `R` refers back to one, so that shared and cyclic structures survive.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from .encode import Encoder

MAX_DEPTH = 150
MAX_NODES = 4_000_000
MAX_BYTES = 64 * 1024 * 1024

# Default factories a defaultdict may carry by value: built-ins without effects.
FACTORIES: dict[str, Any] = {kind.__name__: kind for kind in (list, dict, set, int, str, float, tuple, bool)}


class CodecError(ValueError):
    """The value or the bytes do not fit: too deep, too many, too large, malformed."""


class Outgoing(Protocol):
    """What an end does with values that no rule here covers."""

    def other(self, enc: Encoder, value: Any) -> None: ...


class Incoming(Protocol):
    """What an end makes of handles. Each may refuse with `CodecError`."""

    def theirs(self, kind: int, number: int, group: int) -> Any:
        """An object of the sender's."""

    def ours(self, number: int) -> Any:
        """An object of the receiver's own, come back."""

    def named(self, module: str, name: str) -> Any:
        """A thing that both ends have."""

    def mirrored(self, number: int, group: int, value: Any) -> Any:
        """An immutable value of a class of the sender's."""

    def raised(self, parts: Any) -> Any:
        """An exception object."""
