"""Inside the image: the source of each mutant, one JSON line each. `plant.py COUNT FILE...`, paths in the working directory."""

import ast
import importlib.util
import json
import sys
from pathlib import Path

SEED = 20260912
HARNESS = Path("/harness")


def main(count: int, files: list[str]) -> None:
    spec = importlib.util.spec_from_file_location(
        "tribunal_harness", HARNESS / "__init__.py", submodule_search_locations=[str(HARNESS)]
    )
    assert spec is not None and spec.loader is not None
    sys.modules["tribunal_harness"] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    mutate = importlib.import_module("tribunal_harness.mutate")
    for change in mutate.plan(files, SEED, count):
        changed = mutate.mutant(change)(ast.parse(Path(change.path).read_bytes()), change.path)
        what = f"{change.path}:{change.line} {change.function}: {change.what}"
        print(json.dumps({"path": change.path, "what": what, "text": ast.unparse(changed)}))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
