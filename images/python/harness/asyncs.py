"""Async tests and fixtures without another plug-in: coroutines run to their end on an event loop of the case.

Each case has its own loop. A case that uses an async fixture of a wider scope runs on the loop of that scope instead,
the session's, because what the fixture made is bound to it. Where the base's own conftest loads pytest-asyncio or
anyio, their cases and fixtures are left to them.
"""

import asyncio
import functools
import inspect
import types
from collections.abc import Callable, Generator, Iterator
from typing import Any

import pytest
from _pytest.fixtures import FixtureDef, SubRequest

OTHERS = ("asyncio", "pytest_asyncio", "pytest_asyncio.plugin", "anyio", "anyio.pytest_plugin", "trio", "pytest_trio")
RUNS_ASYNC = "_runs_async"


class Asyncs:
    def __init__(self) -> None:
        self._case: asyncio.Runner | None = None
        self._session: asyncio.Runner | None = None

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        try:
            return (yield)
        finally:
            runner, self._case = self._case, None
            if runner is not None:
                runner.close()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self) -> Generator[None, object, object]:
        try:
            return (yield)
        finally:
            runner, self._session = self._session, None
            if runner is not None:
                runner.close()

    @pytest.hookimpl(tryfirst=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> bool | None:
        function = pyfuncitem.obj
        handle: Any = getattr(function, "hypothesis", None)
        inner = getattr(handle, "inner_test", None)
        if inner is not None and inspect.iscoroutinefunction(inner):
            handle.inner_test = self._sync(pyfuncitem, inner)
            return None
        if not inspect.iscoroutinefunction(function) or _left_to_others(pyfuncitem):
            return None
        arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
        self._sync(pyfuncitem, function)(**arguments)
        return True

    @pytest.hookimpl(tryfirst=True)
    def pytest_fixture_setup(self, fixturedef: FixtureDef[Any], request: SubRequest) -> None:
        if not _is_async(fixturedef.func) or any(request.config.pluginmanager.has_plugin(name) for name in OTHERS):
            return
        wide = fixturedef.scope != "function"
        runner = self._of_session() if wide else self._of_case(request._pyfuncitem)
        function = getattr(fixturedef.func, "__func__", fixturedef.func)
        wrapped = _stepped(runner, function) if inspect.isasyncgenfunction(function) else _awaited(runner, function)
        bound = getattr(fixturedef.func, "__self__", None)
        fixturedef.func = wrapped if bound is None else types.MethodType(wrapped, bound)  # type: ignore[misc]
        # The wrapper holds this case's loop: the next case gets one of its own.
        fixturedef.addfinalizer(functools.partial(_restore, fixturedef, function, bound))

    def _sync(self, item: pytest.Function, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            return self._of_case(item).run(function(*args, **kwargs))

        return run

    def _of_case(self, item: Any) -> asyncio.Runner:
        if self._case is None and not _uses_wide_fixture(item):
            self._case = asyncio.Runner()
        return self._case or self._of_session()

    def _of_session(self) -> asyncio.Runner:
        if self._session is None:
            self._session = asyncio.Runner()
        return self._session


def _is_async(function: Any) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)


def _was_async(function: Any) -> bool:
    return _is_async(function) or getattr(getattr(function, "__func__", function), RUNS_ASYNC, False)


def _left_to_others(item: pytest.Item) -> bool:
    return any(
        item.get_closest_marker(mark) is not None and item.config.pluginmanager.has_plugin(plugin)
        for mark, plugin in (("anyio", "anyio"), ("anyio", "anyio.pytest_plugin"), ("trio", "trio"))
    )


def _uses_wide_fixture(item: Any) -> bool:
    info = getattr(item, "_fixtureinfo", None)
    definitions = info.name2fixturedefs.values() if info is not None else ()
    return any(
        definition.scope != "function" and _was_async(getattr(definition, "func", None))
        for several in definitions
        for definition in several
    )


def _awaited(runner: asyncio.Runner, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        return runner.run(function(*args, **kwargs))

    return _plain(run)


def _stepped(runner: asyncio.Runner, function: Callable[..., Any]) -> Callable[..., Any]:
    async def step(generator: Any) -> Any:
        return await anext(generator)

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Iterator[Any]:
        generator = function(*args, **kwargs)
        yield runner.run(step(generator))
        try:
            runner.run(step(generator))
        except StopAsyncIteration:
            return
        pytest.fail("an async fixture yielded twice", pytrace=False)

    return _plain(run)


def _plain(function: Callable[..., Any]) -> Callable[..., Any]:
    """`inspect` must not look through to the coroutine function."""
    del function.__wrapped__  # type: ignore[attr-defined]
    setattr(function, RUNS_ASYNC, True)
    return function


def _restore(definition: FixtureDef[Any], function: Callable[..., Any], bound: Any) -> None:
    definition.func = function if bound is None else types.MethodType(function, bound)  # type: ignore[misc]
