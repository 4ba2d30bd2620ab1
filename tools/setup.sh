#!/bin/sh
# Make the virtual environment $2 with the interpreter $1 and install the project with its development tools.
set -eu
python=$1
venv=$2

# Some systems ship venv without ensurepip: then the environment is made bare and filled by the system's pip.
if ! "$python" -m venv "$venv" >/dev/null 2>&1; then
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
pip install --quiet --upgrade "pip>=25.1"
pip install --quiet --editable . --group dev
