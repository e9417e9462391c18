#!/usr/bin/env bash
# Usage: install.sh
#
# Makes sure of what the container tier needs, and prints two lines on stdout: the path of a
# root file system (tar.gz) to stand in for the base image's, and the folder of the wheels that
# the image installs. No container registry is asked.
#
# A Docker engine, mmdebstrap and iproute2 come from Debian's packages where they are missing,
# which takes root. Both results are kept in ${MRCR_CACHE:-REPOSITORY/.cache} under names that
# change with what decides them.
#
# PYTHON   the Python whose pip fetches the wheels, of any version; default .venv's
#
# Takes 1 to 3 minutes and 250 MB the first time, then no time.
set -euo pipefail
exec 3>&1 1>&2 # stdout is for the results alone

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
repository=$(cd "$here/../../.." && pwd)
cache=${MRCR_CACHE:-$repository/.cache}
python=${PYTHON:-$repository/.venv/bin/python}

# What the root file system is made of; its Python is the one that the wheels are for.
suite=bookworm
inside=python3-venv,python3-pip,ca-certificates
version=3.11

say() { printf 'container environment: %s\n' "$*" >&2; }
fail() {
  say "$*"
  exit 1
}

apt() {
  DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0 \
    -o Dpkg::Lock::Timeout=300 "$@" >/dev/null
}

install_packages() {
  local wanted=() optional
  command -v dockerd >/dev/null || {
    wanted+=(docker.io iptables)
    # Newer releases of Debian pack the client and BuildKit's part of it by themselves.
    for optional in docker-cli docker-buildx; do
      if apt-cache show "$optional" >/dev/null 2>&1; then wanted+=("$optional"); fi
    done
  }
  # Ubuntu's apt does not know Debian's keys.
  command -v mmdebstrap >/dev/null || wanted+=(mmdebstrap debian-archive-keyring gpg)
  command -v ip >/dev/null || wanted+=(iproute2)
  if ((${#wanted[@]} == 0)); then return; fi

  ((EUID == 0)) || fail "${wanted[*]} must be installed; run this as root, or install them"
  say "installing ${wanted[*]}"
  # An engine of the system's own is not needed: nothing is to be started by the installation.
  local policy=/usr/sbin/policy-rc.d ours=
  if [[ ! -e $policy ]]; then
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
    ours=yes
  fi
  local status=0
  apt update && apt install --yes --no-install-recommends "${wanted[@]}" || {
    say "the packages could not be installed; once more"
    sleep 5
    apt update && apt install --yes --no-install-recommends "${wanted[@]}"
  } || status=$?
  if [[ $ours ]]; then rm -f "$policy"; fi
  ((status == 0)) || fail "${wanted[*]}: not installed"
}

short_hash() { sha256sum | cut -c 1-12; }

make_rootfs() {
  say "making a root file system of Debian $suite"
  mmdebstrap --quiet --variant=apt --include="$inside" \
    --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/doc/*' \
    --dpkgopt='path-exclude=/usr/share/locale/*' "$suite" - | gzip -1 >"$1"
}

make_wheels() {
  say "fetching the wheels for Python $version"
  mkdir -p "$1"
  # pip applies conditions (`; python_version < …`) to the Python it runs on, not to the one it
  # fetches for: they are applied here, and left out.
  "$python" "$here/applicable.py" "$version" \
    "$repository/requirements/image.txt" "$repository/requirements/build.txt" >"$1.txt"
  "$python" -m pip --disable-pip-version-check --no-input download -qq --no-deps \
    --require-hashes --requirement "$1.txt" --only-binary :all: --dest "$1" \
    --python-version "$version" --implementation cp --abi "cp${version/./}" --abi abi3 --abi none \
    --platform manylinux_2_28_x86_64 --platform manylinux_2_27_x86_64 \
    --platform manylinux_2_24_x86_64 --platform manylinux_2_17_x86_64 \
    --platform manylinux2014_x86_64 --platform manylinux_2_12_x86_64 \
    --platform manylinux2010_x86_64 --platform manylinux_2_5_x86_64 \
    --platform manylinux1_x86_64
  rm -f "$1.txt"
}

# Each is written beside its place and renamed, so that what is there is whole.
provide() {
  local path=$1 maker=$2
  if [[ ! -e $path ]]; then
    rm -rf "$path.part"
    "$maker" "$path.part"
    mv "$path.part" "$path"
    say "$(basename "$path") ready after ${SECONDS} s"
  fi
  printf '%s\n' "$path" >&3
}

if (($# > 0)); then fail "usage: install.sh"; fi
mkdir -p "$cache"
cache=$(cd "$cache" && pwd)

# One at a time; the others find it done when it is their turn.
exec 9>"$cache/container.lock"
flock 9
install_packages
rootfs=$(printf '%s\n' "$suite" "$inside" | short_hash)
wheels=$({ echo "$version" && cat "$repository"/requirements/{image,build}.txt; } | short_hash)
provide "$cache/container-rootfs-$rootfs.tar.gz" make_rootfs
provide "$cache/container-wheels-$wheels" make_wheels
