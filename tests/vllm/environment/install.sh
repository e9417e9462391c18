#!/usr/bin/env bash
# Usage: install.sh [DIR]
#
# Installs real vLLM for CPUs into a virtual environment of its own, unless it is there already,
# and prints the folder of its commands, such as `vllm`, as the only line on stdout.
#
# DIR      where; default ${MRCR_CACHE:-REPOSITORY/.cache}/vllm-HASH, where HASH changes with the
#          files that decide what is installed
# PYTHON   the Python to use, if it is a 3.11; else python3.11 from PATH, else pyenv's
#
# Takes 1 to 3 minutes and 2.5 GB; pip's own settings and cache are used.
set -euo pipefail
exec 3>&1 1>&2 # stdout is for the result alone

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
repository=$(cd "$here/../../.." && pwd)
inputs=(install.sh requirements.txt torch.txt shim/pyproject.toml)

say() { printf 'vllm environment: %s\n' "$*" >&2; }
fail() {
  say "$*"
  exit 1
}

is_python_3_11() {
  # A pyenv shim is on PATH even where its Python is not installed: run it to know.
  "$1" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' 2>/dev/null
}

find_python() {
  local candidate
  for candidate in "${PYTHON:-python3.11}" python3.11 \
    "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.11*/bin/python3.11; do
    if is_python_3_11 "$candidate"; then
      printf '%s\n' "$candidate"
      return
    fi
  done
  fail "no Python 3.11 found; install python3.11, or set PYTHON to one"
}

is_complete() {
  # The Python it was made with may have been removed since, as by a new image of a CI runner.
  [[ -e $stamp ]] && "$dir/bin/python" -c '' 2>/dev/null
}

build() {
  local python pip
  python=$(find_python) || exit 1
  say "building in $dir with $("$python" -V)"
  rm -rf "$dir"
  "$python" -m venv "$dir"
  pip=("$dir/bin/python" -m pip --disable-pip-version-check --no-input install -qq --no-deps)

  "${pip[@]}" --requirement "$here/torch.txt" ||
    fail "pip found no torch for CPUs; let PIP_FIND_LINKS or PIP_EXTRA_INDEX_URL name" \
      "a place that has $(tail -n 1 "$here/torch.txt")"
  say "torch installed after ${SECONDS} s"
  "${pip[@]}" --require-hashes --requirement "$here/requirements.txt"
  say "vLLM installed after ${SECONDS} s"
  # Copied, because setuptools leaves its build folders beside the sources.
  cp -R "$here/shim" "$dir/shim"
  "${pip[@]}" --no-build-isolation "$dir/shim"

  "$dir/bin/vllm" --version >/dev/null || fail "vLLM was installed but does not run"
  touch "$stamp"
  say "ready after ${SECONDS} s"
}

if (($# > 1)); then fail "usage: install.sh [DIR]"; fi
if (($# == 1)); then
  dir=$1
else
  hash=$(cd "$here" && sha256sum "${inputs[@]}" | sha256sum | cut -c 1-12)
  dir=${MRCR_CACHE:-$repository/.cache}/vllm-$hash
fi
mkdir -p "$(dirname "$dir")"
dir=$(cd "$(dirname "$dir")" && pwd)/$(basename "$dir")
# A virtual environment holds its own path and cannot be moved into place when it is done;
# instead, only one with this file counts, and a half-built one is built anew.
stamp=$dir/.complete

# One at a time; the others find it complete when it is their turn.
exec 9>"$dir.lock"
flock 9
if is_complete; then say "using $dir"; else build; fi
printf '%s\n' "$dir/bin" >&3
