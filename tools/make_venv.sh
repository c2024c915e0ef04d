#!/usr/bin/env bash
# Usage: make_venv.sh FOLDER PYTHON...   A virtual environment of the first Python that runs and is new enough.
set -euo pipefail

folder=$1
shift

for python in "$@"; do
  # A shim of a version manager may be on the PATH without anything behind it: only running it tells.
  if "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    echo "Making $folder with $("$python" -c 'import sys; print(sys.executable, sys.version.split()[0])') …"
    if "$python" -m venv "$folder"; then
      exit 0
    fi
    rm -rf "$folder"
    echo "$python cannot make a virtual environment: install its venv module (Debian, Ubuntu: apt install" \
      "python3-venv), or name another Python: make BASE_PYTHON=/path/to/python3 …" >&2
    exit 1
  fi
done

echo "Python 3.11 or newer is needed and none of these is one: $*. Install it, or name it:" \
  "make BASE_PYTHON=/path/to/python3 …" >&2
exit 1
