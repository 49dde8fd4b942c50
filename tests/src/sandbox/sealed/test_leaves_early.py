"""A file that leaves the interpreter while it is imported."""

import os

#: module prints last words and exits 5
print("last words", flush=True)
os._exit(5)
