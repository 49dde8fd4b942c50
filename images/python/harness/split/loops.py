"""Coroutines and async generators across the two processes.

Each process keeps its own event loop. A coroutine of the other end's is a real one here that has the original scheduled
on the other end's loop and waits for word of its end; cancelling it cancels the original. What a test calls while its
loop runs is called inside the product's loop, so that it finds a running one.
"""

from __future__ import annotations

import _thread
import asyncio
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from . import asks, mirror

if TYPE_CHECKING:
    from .peer import Peer


class Loops:
    def __init__(self, peer: Peer) -> None:
        self._peer = peer
        self._own: asyncio.AbstractEventLoop | None = None
        self._last: Callable[[], asyncio.AbstractEventLoop | None] = lambda: None
        self._tasks: dict[int, Any] = {}
        self._count = 0

    # -- the other end's coroutines, here -------------------------------------------------------------------------

    def local(self, kind: int, number: int) -> Any:
        """A real coroutine or async generator for one of the other end's."""
        grip = mirror.Grip(self._peer, number)
        ref = mirror.Ref(number)
        made: Any = self._drive(ref, "await", None, grip) if kind == asks.COROUTINE else self._generate(ref, grip)
        self._peer.proxies[number] = made
        self._peer.foreign[made] = grip
        return made

    def waiting(self, awaitable: Any) -> Any:
        """What `__await__` of a mirrored object gives."""
        return self._drive(awaitable, "await", None, None).__await__()

    async def _drive(self, ref: Any, action: str, argument: Any, grip: Any) -> Any:
        loop = asyncio.get_running_loop()
        self._last = weakref.ref(loop)
        future: asyncio.Future[Any] = loop.create_future()

        def done(good: bool, value: Any) -> None:
            if good is False and isinstance(value, BaseException):
                self._peer.surfaced(value)
            loop.call_soon_threadsafe(_settle, future, good, value)

        task = self._peer.request(asks.SCHEDULE, (ref, action, argument, done))
        while True:
            try:
                return await asyncio.shield(future)
            except asyncio.CancelledError:
                if future.done():
                    raise
                self._peer.request(asks.CANCEL, task)
                await asyncio.wait([future])
                if future.exception() is not None:
                    raise
                return future.result()

    async def _generate(self, ref: Any, grip: Any) -> Any:
        sent: Any = None
        while True:
            try:
                value = await self._drive(ref, "asend", sent, grip)
            except StopAsyncIteration:
                return
            while True:
                try:
                    sent = yield value
                except GeneratorExit:
                    await self._drive(ref, "aclose", None, grip)
                    raise
                except BaseException as error:  # noqa: BLE001  the generator's to handle
                    try:
                        value = await self._drive(ref, "athrow", error, grip)
                    except StopAsyncIteration:
                        return
                    continue
                break

    # -- ours, for the other end ----------------------------------------------------------------------------------

    def schedule(self, value: Any) -> int:
        """Run an awaitable of ours on our loop and tell `done` how it ended."""
        target, action, argument, done = value
        last = self._last()
        loop = last if last is not None and last.is_running() else self._loop()  # one that is over runs nothing more
        future = asyncio.run_coroutine_threadsafe(_acted(target, action, argument), loop)
        self._count += 1
        number = self._count
        self._tasks[number] = future

        def ended(_: Any) -> None:
            self._tasks.pop(number, None)
            try:
                result = future.result()
            except BaseException as error:  # noqa: BLE001  every end is told
                self._peer.sank(error)
                done(False, error)
            else:
                done(True, result)

        future.add_done_callback(ended)
        return number

    def cancel(self, number: Any) -> None:
        task = self._tasks.get(number)
        if task is not None:
            task.cancel()

    def inside(self, action: Callable[[], Any]) -> Any:
        """Call something of ours with our loop running."""

        async def called() -> Any:
            return action()

        return asyncio.run_coroutine_threadsafe(called(), self._loop()).result()

    def _loop(self) -> asyncio.AbstractEventLoop:
        if self._own is None:
            self._own = asyncio.new_event_loop()
            _thread.start_new_thread(self._run, (self._own,))
        return self._own

    @staticmethod
    def _run(loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        loop.run_forever()


def _settle(future: asyncio.Future[Any], good: bool, value: Any) -> None:
    if future.done():
        return
    if good:
        future.set_result(value)
    elif isinstance(value, asyncio.CancelledError):
        future.cancel()
    elif isinstance(value, StopIteration):
        future.set_exception(RuntimeError("coroutine raised StopIteration"))
    else:
        future.set_exception(value)


async def _acted(target: Any, action: str, argument: Any) -> Any:
    if action == "await":
        return await target
    if action == "asend":
        return await (target.asend(argument) if hasattr(target, "asend") else anext(target))
    if action == "athrow":
        return await target.athrow(argument)
    return await target.aclose()
