#!/usr/bin/env bash
# Usage: install.sh [DIR]
#
# Installs what the lint tests need beyond Python's packages, unless it is there already: GitHub's
# language service and readers of JUnit XML from npm, and Jenkins' schema of JUnit XML. Prints the
# folder as the only line on stdout; `node FOLDER/junit.mjs` and so on run there.
#
# DIR      where; default ${MRCR_CACHE:-REPOSITORY/.cache}/lint-HASH, where HASH changes with the
#          files that decide what is installed
# PYTHON   the Python whose pip fetches the schema; default the repository's .venv
#
# Needs Node 20 or newer with npm; where there is none, root installs Debian's packages. Takes some
# 15 seconds and 20 MB; npm's and pip's own settings and caches are used.
set -euo pipefail
exec 3>&1 1>&2 # stdout is for the result alone

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
repository=$(cd "$here/../../.." && pwd)
inputs=(install.sh package.json schema.txt language-service.mjs junit.mjs)

say() { printf 'lint environment: %s\n' "$*" >&2; }
fail() {
  say "$*"
  exit 1
}

find_node() {
  if ! command -v npm >/dev/null && ((EUID == 0)) && command -v apt-get >/dev/null; then
    say "installing Debian's nodejs and npm"
    apt-get update -qq && apt-get install -qq --yes --no-install-recommends nodejs npm
  fi
  command -v npm >/dev/null || fail "npm is not installed; install Node 20 or newer"
  node -e 'process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)' ||
    fail "Node $(node --version) is too old; install Node 20 or newer"
}

build() {
  find_node
  say "building in $dir with Node $(node --version)"
  rm -rf "$dir"
  mkdir "$dir"
  # A module is looked for beside the script that imports it.
  cp "$here/package.json" "$here/language-service.mjs" "$here/junit.mjs" "$dir"
  npm install --prefix "$dir" --no-package-lock --ignore-scripts --no-audit --no-fund \
    --loglevel=error

  "${PYTHON:-$repository/.venv/bin/python}" -m pip --disable-pip-version-check --no-input download \
    -qq --no-deps --no-binary pytest --require-hashes --requirement "$here/schema.txt" \
    --dest "$dir/schema"
  tar --extract --gzip --file "$dir"/schema/pytest-*.tar.gz --directory "$dir" \
    --strip-components=3 --wildcards '*/testing/example_scripts/junit-10.xsd'
  rm -r "$dir/schema"
  [[ -s $dir/junit-10.xsd ]] || fail "pytest's source distribution holds no junit-10.xsd"
  touch "$stamp"
  say "ready after ${SECONDS} s"
}

if (($# > 1)); then fail "usage: install.sh [DIR]"; fi
if (($# == 1)); then
  dir=$1
else
  hash=$(cd "$here" && sha256sum "${inputs[@]}" | sha256sum | cut -c 1-12)
  dir=${MRCR_CACHE:-$repository/.cache}/lint-$hash
fi
mkdir -p "$(dirname "$dir")"
dir=$(cd "$(dirname "$dir")" && pwd)/$(basename "$dir")
# Only a folder with this file counts; a half-built one is built anew.
stamp=$dir/.complete

# One at a time; the others find it complete when it is their turn.
exec 9>"$dir.lock"
flock 9
if [[ -e $stamp ]]; then say "using $dir"; else build; fi
printf '%s\n' "$dir" >&3
