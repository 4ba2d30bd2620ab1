#!/bin/sh
# Create the virtual environment $2 with the interpreter $1 if it does not exist. Further arguments say what pip installs
# there, like --editable . for the project and --group dev for the development tools.
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
pip install --quiet --upgrade "pip>=25.1"
pip install --quiet "$@"
