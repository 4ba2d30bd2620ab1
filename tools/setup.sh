#!/bin/sh
# Create the virtual environment $2 with the interpreter $1 if it does not exist, and install requirements/$3.txt there, then the
# project itself if $4 is --project. Each file has the versions that are tested, with the hashes of their files.
set -eu
python=$1
venv=$2

# Some systems ship venv without ensurepip: then the system's pip installs pip into the environment.
if [ ! -x "$venv/bin/python" ] && ! "$python" -m venv "$venv" >/dev/null 2>&1; then
    rm -rf "$venv"
    "$python" -m venv --without-pip "$venv"
fi
if "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
    pip() { "$venv/bin/python" -m pip "$@"; }
else
    pip() { "$python" -m pip --python "$venv/bin/python" "$@"; }
    pip install --quiet pip
    pip() { "$venv/bin/python" -m pip "$@"; }
fi
pip install --quiet --require-hashes --requirement "requirements/$3.txt"
[ "${4:-}" != --project ] || pip install --quiet --no-deps --no-build-isolation --editable .
