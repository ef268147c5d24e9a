#!/usr/bin/env bash
# Finds a PostgreSQL server for the tests, which start one of their own in a temporary directory; installs the
# package by apt where there is none and apt may be used.
set -euo pipefail

# The same places as springtide.testing looks at.
find_server() {
    local place
    for place in "$(pg_config --bindir 2>/dev/null || true)" /usr/lib/postgresql/*/bin /usr/local/pgsql/bin; do
        if [ -x "$place/initdb" ] && [ -x "$place/postgres" ]; then
            echo "$place"
            return
        fi
    done
    place=$(command -v initdb) && [ -x "$(dirname "$place")/postgres" ] && dirname "$place"
}

if ! found=$(find_server); then
    echo "postgres: no server found; installing the package postgresql"
    sudo=()
    if [ "$(id -u)" -ne 0 ]; then
        sudo=(sudo -n)
    fi
    # One apt at a time: the script for Prometheus may run beside this one.
    apt=(flock "$(dirname "${BASH_SOURCE[0]}")" "${sudo[@]}" apt-get -o DPkg::Lock::Timeout=300)
    if ! command -v apt-get >/dev/null ||
        ! { "${apt[@]}" install -y -qq postgresql >/dev/null ||
            { "${apt[@]}" update -qq && "${apt[@]}" install -y -qq postgresql >/dev/null; }; }; then
        echo "postgres: could not install it. Install PostgreSQL 13 or newer (Debian, Ubuntu: apt install postgresql)" \
            "or put its initdb and postgres on PATH, and try again." >&2
        exit 1
    fi
    found=$(find_server) || {
        echo "postgres: installed, but initdb and postgres are in none of the usual places; put them on PATH." >&2
        exit 1
    }
fi
echo "postgres: $("$found/postgres" --version) in $found"
