#!/usr/bin/env bash
# Puts Flink into .flink, for `springtide bench nexmark`: its jars from PyPI in an environment of its own, the jar that
# reads Parquet from Maven Central, and Hadoop's classes, which that jar needs, from PySpark. Java is Springtide's.
# Flink is driven through py4j, so none of what PyFlink depends on is needed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

version=2.3.0
parquet=flink-sql-parquet-$version.jar
parquet_sha256=f30617f4a5a6d437750f155ff72178ab34439aec91df64d96621c260559ba5fd

venv=${VENV:-.venv}
target=.flink
scratch=$(mktemp -d "${TMPDIR:-/tmp}/springtide-flink-XXXXXX")
trap 'rm -rf "$scratch"' EXIT
log=$scratch/log

# Run a command quietly: `step WHAT COMMAND...`
step() {
    local what=$1 began=$SECONDS
    shift
    printf 'flink: %s ... ' "$what"
    if "$@" >"$log" 2>&1; then
        printf '%d s\n' $((SECONDS - began))
    else
        printf 'failed after %d s\n' $((SECONDS - began))
        tail -n 15 "$log" | sed 's/^/    /' >&2
        exit 1
    fi
}

java=$("$venv/bin/python" -m springtide.java_home)/bin/java
spark=$("$venv/bin/python" -c 'import importlib.util, pathlib; print(pathlib.Path(importlib.util.find_spec("pyspark").origin).parent / "jars")')

if ! "$target/bin/python" -m pip --version >/dev/null 2>&1; then
    step "virtual environment in $target" "$venv/bin/python" -m venv --clear "$target"
fi
step "packages (Flink is large)" "$target/bin/python" -m pip install --disable-pip-version-check --no-deps \
    --constraint constraints.txt "apache-flink-libraries==$version" py4j pyarrow
mkdir -p "$target/jars"

good() {
    echo "$parquet_sha256  $1" | sha256sum --check --status 2>/dev/null
}

# With Ivy, as `springtide kafka fetch` does it.
fetch() {
    printf '%s' '<ivy-module version="2.0"><info organisation="springtide" module="flink"/><dependencies>' \
        '<dependency org="org.apache.flink" name="flink-sql-parquet" rev="'$version'" transitive="false"/>' \
        '</dependencies></ivy-module>' >"$scratch/ivy.xml"
    "$java" -jar "$spark"/ivy-*.jar -ivy "$scratch/ivy.xml" -cache "$scratch/cache" -types jar -warn \
        -retrieve "$scratch/[artifact]-[revision].[ext]" || return 1
    good "$scratch/$parquet" || {
        echo "$parquet is not the one that was expected: its checksum is another" >&2
        return 1
    }
    mv "$scratch/$parquet" "$target/jars/$parquet"
}

if ! good "$target/jars/$parquet"; then
    step "$parquet" fetch
fi
for jar in "$spark"/hadoop-client-api-*.jar "$spark"/hadoop-client-runtime-*.jar; do
    cp --update "$jar" "$target/jars/"
done

# Files in the order of their names. Spark's jars have a compiler, so a Java without one will do.
compile() {
    local source=src/springtide/bench/experiments/nexmark/LocalityAwareSplitAssigner.java libraries
    libraries=$(printf '%s:' "$target"/lib/python*/site-packages/pyflink/lib/*.jar)
    rm -rf "$target/classes"
    mkdir "$target/classes"
    "$java" -cp "$(printf '%s:' "$spark"/janino-*.jar "$spark"/commons-compiler-*.jar)" \
        org.codehaus.commons.compiler.samples.CompilerDemo -d "$target/classes" -classpath "$libraries" "$source"
}
step "order of files" compile
echo "flink: Flink $version in $target, Java in ${java%/bin/java}"
