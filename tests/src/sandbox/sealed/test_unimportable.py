"""A file that cannot be imported."""

#: module fails ZeroDivisionError: on import
raise ZeroDivisionError("on import")
