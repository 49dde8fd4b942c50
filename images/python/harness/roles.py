"""The roles one package plays, by the first argument.

`supervise` is PID 1, `zygote` an interpreter that attempts are forked from, `digest FILE...` prints the bytecode
digests of files for a maintainer. A role imports only what it needs: PID 1 stays small.
"""

import sys


def main(arguments: list[str]) -> int:
    role, rest = (arguments[0], arguments[1:]) if arguments else ("", [])
    if role == "supervise" and not rest:
        from .supervisor import supervise

        return supervise()
    if role == "zygote" and len(rest) == 1 and rest[0].isdigit():
        from .zygote import serve

        return serve(int(rest[0]))
    if role == "digest" and rest:
        from .digest import main as digest

        return digest(rest)
    print("usage: harness supervise | zygote FD | digest FILE...", file=sys.stderr)
    return 64
