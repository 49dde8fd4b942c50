"""What the product tried that no honest code needs: told to PID 1 as it happens, each once a phase.

The judge weighs it against what base's own run shows. Bounded here, because a product can try a million times; said by
whatever thread saw it.
"""

from .channel import Channel
from .record import TAMPERS, WHAT


class Tampers:
    def __init__(self) -> None:
        self._channel: Channel | None = None  # nothing of the product runs before there is one
        self._told: set[tuple[str, str]] = set()

    def open(self, channel: Channel) -> None:
        self._channel = channel

    def tell(self, kind: str, what: str) -> None:
        """`kind` is one of `record.TAMPER_KINDS`."""
        told = (kind, what[:WHAT])
        if self._channel is not None and told not in self._told and len(self._told) < TAMPERS:
            self._told.add(told)
            self._channel.send(kind="tamper", tamper=kind, what=told[1])

    def border(self) -> None:
        """A phase begins: what is seen from now on is told anew."""
        self._told.clear()
