#!/bin/sh
# Create the virtual environment $2 with the interpreter $1 if it does not exist, and install there requirements/NAME.txt of each
# other NAME, then the project itself if the last word is --project. The files have the versions that are tested, with the
# hashes of their files.
set -eu
python=$1
venv=$2
shift 2

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
for name; do
    if [ "$name" = --project ]; then
        pip install --quiet --no-deps --no-build-isolation --editable .
    else
        pip install --quiet --require-hashes --requirement "requirements/$name.txt"
    fi
done
