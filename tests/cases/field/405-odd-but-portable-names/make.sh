#!/bin/bash
# usage: make.sh DEST  -> builds a git repository in DEST, prints BASE=<sha> and HEAD=<sha>
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd); d=$1; rm -rf "$d"; mkdir -p "$d"; cd "$d"
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
export GIT_AUTHOR_NAME=case GIT_AUTHOR_EMAIL=case@example.invalid GIT_COMMITTER_NAME=case GIT_COMMITTER_EMAIL=case@example.invalid
export GIT_AUTHOR_DATE="2024-01-01T00:00:00Z" GIT_COMMITTER_DATE="2024-01-01T00:00:00Z"
git init -q -b main .
cp -a "$here/base/." .
git add -A -f; git commit -qm base; BASE=$(git rev-parse HEAD)
git checkout -qb agent
mkdir -p 'src/a b' src/data; touch 'src/a b/x y.txt' src/data/é.txt 'src/data/#1%20.txt' "src/data/it's.txt" 'src/data/"q".txt' src/data/-rf 'src/data/<x>|*?.txt' src/data/😀.json 'src/data/$HOME' 'src/data/ lead'
printf '\xef\xbb\xbf' > calc; sed 's/$/\r/' src/calc.py >> calc; mv calc src/calc.py
printf '# -*- coding: latin-1 -*-\nX = "\xe9"\n' > src/latin.py
printf '* text=auto eol=crlf ident\n*.py filter=lfs diff=lfs merge=lfs -text\n' > src/.gitattributes
git add -A -f; git commit -qm head

echo "BASE=$(git rev-parse main)"; echo "HEAD=$(git rev-parse agent)"
