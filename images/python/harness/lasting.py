"""What the imports of a start made is made immortal (PEP 683): attempts that only use it do not write to it.

Each use of an object counts its references where it lies, and after a fork the first write to a page copies it: half of
the pages that an attempt would copy. What a start made lives as long as the start anyway. The pin library walks over
the objects; where heads of objects are not laid out as it knows them nothing is done.
"""

import array
import ctypes
import gc
import sys
import types

_KNOWN = ((3, 12), (3, 13))
_IMMORTAL = 0xFFFFFFFF
_FIELDS = ("co_consts", "co_names", "co_filename", "co_name", "co_qualname", "co_linetable", "co_exceptiontable")


def keep() -> int:
    """For an interpreter that is about to be forked: how many objects were made immortal."""
    walk = getattr(ctypes.CDLL(None), "tribunal_keep", None)
    if walk is None or not _as_known():
        return 0
    walk.restype = ctypes.c_size_t
    walk.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
    objects = gc.get_objects()
    objects += _of_codes(objects)
    places = array.array("Q", map(id, objects))
    return int(walk(places.buffer_info()[0], len(objects)))


def _as_known() -> bool:
    probe = object()
    references = ctypes.c_uint32.from_address(id(probe)).value
    kind = ctypes.c_void_p.from_address(id(probe) + 8).value
    return (
        sys.version_info[:2] in _KNOWN
        and references == sys.getrefcount(probe) - 1
        and kind == id(object)
        and ctypes.c_uint32.from_address(id(None)).value == _IMMORTAL
    )


def _of_codes(objects: list[object]) -> list[object]:
    """Code is no container to the collector."""
    todo = [each.__code__ for each in objects if type(each) is types.FunctionType]
    found: list[object] = []
    while todo:
        code = todo.pop()
        found.append(code)
        found += [getattr(code, field) for field in _FIELDS]
        todo += [each for each in code.co_consts if type(each) is types.CodeType]
    return found
