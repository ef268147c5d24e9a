#!/usr/bin/env bash
# Finds Prometheus for the tests, which start one of their own in a temporary directory; where there is none, fetches
# the Debian package by apt and unpacks it into .prometheus. It is not installed, so no service is started.
# Without Prometheus the tests that need it are skipped, and say so: this never fails.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# The same places as the tests look at.
find_programs() {
    local place
    for place in "$(dirname "$(command -v prometheus || echo none/none)")" /usr/local/bin /usr/bin .prometheus/usr/bin; do
        if [ -x "$place/prometheus" ] && [ -x "$place/promtool" ]; then
            echo "$place"
            return
        fi
    done
    return 1
}

fetched=$(mktemp -d "${TMPDIR:-/tmp}/springtide-prometheus-XXXXXX")
trap 'rm -rf "$fetched"' EXIT
scripts=$PWD/scripts

# One apt at a time: the script for PostgreSQL may run beside this one.
download() {
    (cd "$fetched" && flock "$scripts" apt-get -qq -o APT::Sandbox::User=root download prometheus) >/dev/null 2>&1
}

update() {
    local sudo=()
    if [ "$(id -u)" -ne 0 ]; then
        sudo=(sudo -n)
    fi
    flock "$scripts" "${sudo[@]}" apt-get -qq update >/dev/null 2>&1
}

if ! found=$(find_programs); then
    echo "prometheus: not found; fetching the package prometheus"
    if command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null && { download || { update && download; }; }; then
        rm -rf .prometheus
        dpkg-deb --extract "$fetched"/prometheus_*.deb .prometheus
    fi
    if ! found=$(find_programs); then
        echo "prometheus: could not fetch it, so the tests that need it are skipped. Put prometheus and promtool on PATH" \
            "to run them." >&2
        exit 0
    fi
fi
echo "prometheus: $("$found/prometheus" --version 2>&1 | head -n 1) in $found"
