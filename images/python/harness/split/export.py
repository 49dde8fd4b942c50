"""Objects of ours that the other end holds by number, and how each kind is announced.

A number stands for one object as long as the other end holds it. Classes of the standard library that both ends have
cross by name; what the name means at the other end is for that end to decide.
"""

from __future__ import annotations

import enum
import sys
import types
from typing import TYPE_CHECKING, Any

from . import mirror, remote
from .asks import ASYNC_DEF, ASYNC_GEN, ASYNCGEN, CLASS, COROUTINE, FUNCTION, GEN, GENERATOR, MODULE, OBJECT
from .codec import CodecError
from .encode import Encoder, always
from .stdlib import VALUES, named_as, plain_part

if TYPE_CHECKING:
    from .peer import Peer

_MOST = 2_000_000
_CHAIN = 8  # links of a chain of exceptions that cross


_RUNNING = (types.CoroutineType, types.GeneratorType, types.AsyncGeneratorType)


class Exports:
    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}
        self._held: dict[int, list[Any]] = {}  # number: [object, times sent]
        self._blind: dict[int, int] = {}  # id: how many numbers it has that only a comparison gave
        self._next = 1

    def number(self, value: Any) -> int:
        """Its number; counts as sent once more."""
        number = self._numbers.get(id(value))
        if number is None:
            if len(self._held) >= _MOST:
                raise CodecError("too many objects are held by the other process")
            number = self._next
            self._next += 1
            self._numbers[id(value)] = number
            self._held[number] = [value, 1]
        else:
            self._held[number][1] += 1
        return number

    def blind(self, value: Any, seen: dict[int, int]) -> int:
        """A number for what is only compared: another one each time, unless the other end had the object before.

        So that it cannot tell by the number which of two operands it has met already. `seen`: those of this frame.
        """
        if id(value) in self._numbers:
            return self.number(value)
        number = seen.get(id(value))
        if number is None:
            number = seen[id(value)] = self._next
            self._next += 1
            self._held[number] = [value, 1]
            self._blind[id(value)] = self._blind.get(id(value), 0) + 1
        else:
            self._held[number][1] += 1
        return number

    def holds(self, value: Any) -> bool:
        """Whether the other end has it."""
        return id(value) in self._numbers or id(value) in self._blind

    def is_blind(self, value: Any) -> bool:
        """Whether the other end has met it as an operand only."""
        return id(value) in self._blind and id(value) not in self._numbers

    def get(self, number: int) -> Any:
        try:
            return self._held[number][0]
        except KeyError:
            raise CodecError("an object that was not sent") from None

    def release(self, number: int, times: int) -> None:
        held = self._held.get(number)
        if held is None:
            return
        held[1] -= times
        if held[1] <= 0:
            del self._held[number]
            if self._numbers.get(id(held[0])) == number:
                del self._numbers[id(held[0])]
            elif (left := self._blind.get(id(held[0]), 0)) > 1:
                self._blind[id(held[0])] = left - 1
            else:
                self._blind.pop(id(held[0]), None)


_BUILT_IN = (types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType)


def write(peer: Peer, enc: Encoder, value: Any) -> None:
    """A value that does not cross as plain data."""
    kind = type(value)
    if isinstance(kind, mirror.MirrorMeta) or isinstance(value, mirror.MirrorMeta):
        _back(enc, value)
        always(kind, _back)
        return
    if isinstance(value, type):
        _class(peer, enc, value)
        return
    back = mirror.origin(value)
    if back is not None:
        enc.back(back)
        return
    if kind is types.FunctionType:
        flags = value.__code__.co_flags
        marks = (ASYNC_DEF if flags & 0x80 else 0) | (ASYNC_GEN if flags & 0x200 else 0) | (GEN if flags & 0x20 else 0)
        named = named_as(value, peer.oracle)
        if named is not None:
            enc.named(*named)
        else:
            enc.handle(FUNCTION, _number(peer, enc, value), marks)
    elif kind in _BUILT_IN and (named := named_as(value, peer.oracle)) is not None:
        enc.named(*named)
    elif kind is types.ModuleType or issubclass(kind, types.ModuleType):
        _module(peer, enc, value)
    elif isinstance(value, BaseException):
        _exception(peer, enc, value)
    elif isinstance(value, enum.Enum):
        _enum(peer, enc, value)
    elif kind in _RUNNING and (grip := peer.foreign.get(value)) is not None:
        enc.back(grip.number)
    elif kind is types.CoroutineType:
        enc.handle(COROUTINE, _number(peer, enc, value), 0)
    elif kind is types.GeneratorType:
        enc.handle(GENERATOR, _number(peer, enc, value), 0)
    elif kind is types.AsyncGeneratorType:
        enc.handle(ASYNCGEN, _number(peer, enc, value), 0)
    elif (named := named_as(value)) is not None:
        enc.named(*named)
    else:
        part = plain_part(value)
        if part is not VALUES:
            enc.mirrored(_number(peer, enc, value), peer.exports.number(kind), part)
        else:
            enc.handle(OBJECT, _number(peer, enc, value), peer.exports.number(kind))


def _back(enc: Encoder, value: Any) -> None:
    """An object of the other end's."""
    enc.back(mirror.number_of(value))


for _remote in remote.REMOTES:
    always(_remote, _back)
always(mirror.Ref, lambda enc, value: enc.back(value.number))
del _remote


def _number(peer: Peer, enc: Encoder, value: Any) -> int:
    return peer.exports.number(value) if enc.blind is None else peer.exports.blind(value, enc.blind)


def _class(peer: Peer, enc: Encoder, value: type) -> None:
    known = mirror.local_subclass(value)
    named = named_as(value, peer.oracle)
    if known is not None:
        enc.back(known)
    elif named is not None:
        enc.named(*named)
    elif peer.oracle and peer.is_dependency(value):
        enc.named(value.__module__, value.__qualname__)
    else:
        enc.handle(CLASS, peer.exports.number(value), 0)


def _module(peer: Peer, enc: Encoder, value: types.ModuleType) -> None:
    name = value.__name__
    if peer.oracle and name.partition(".")[0] in sys.stdlib_module_names and sys.modules.get(name) is value:
        enc.named(name, "")
    else:
        enc.handle(MODULE, _number(peer, enc, value), 0)


def _enum(peer: Peer, enc: Encoder, value: enum.Enum) -> None:
    enc.mirrored(_number(peer, enc, value), peer.exports.number(type(value)), (value._name_, value._value_))


def _exception(peer: Peer, enc: Encoder, value: BaseException) -> None:
    state = {key: item for key, item in vars(value).items() if type(key) is str and not key.startswith("_t_")}
    for name in ("name", "path", "obj") if isinstance(value, (ImportError, AttributeError, NameError)) else ():
        state.pop(name, None)
    more: Any = None
    if isinstance(value, ImportError):
        more = (value.name, value.path)
    elif isinstance(value, SystemExit):
        more = value.code
    elif isinstance(value, StopIteration):
        more = value.value
    elif isinstance(value, BaseExceptionGroup):
        more = (value.message, tuple(value.exceptions))
    elif isinstance(value, OSError):
        more = (value.filename, value.filename2)
    number = _number(peer, enc, value)
    enc.chain += 1
    far = enc.chain > _CHAIN
    enc.raised(
        (
            number, type(value), value.args, peer.state_of(value, state), more, None if far else value.__cause__,
            None if far else value.__context__, value.__suppress_context__, peer.trace_of(value),
        )
    )  # fmt: skip
    enc.chain -= 1


def stripped(error: BaseException) -> BaseException:
    """An exception without the frames of this package's own serving."""
    return error
