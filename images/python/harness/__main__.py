"""Entry point: `python3 -I -S -B /opt/tribunal/harness ROLE`.

Loads the directory as a package under a name of its own and takes it off the import path again, so that none of
its modules can be imported, or shadowed, by a bare name.
"""

import importlib.util
import sys
from pathlib import Path

NAME = "tribunal_harness"


def load() -> None:
    here = Path(__file__).resolve().parent
    sys.path[:] = [entry for entry in sys.path if entry not in ("", str(here), str(Path(sys.argv[0])))]
    spec = importlib.util.spec_from_file_location(NAME, here / "__init__.py", submodule_search_locations=[str(here)])
    if spec is None or spec.loader is None:
        raise SystemExit(f"no harness in {here}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[NAME] = module
    spec.loader.exec_module(module)


if __name__ == "__main__":
    load()
    sys.exit(importlib.import_module(f"{NAME}.roles").main(sys.argv[1:]))
