#!/usr/bin/env bash
# Usage: install.sh
#
# Makes sure of a browser that the HTML report can be opened in, and prints its path as the only
# line on stdout. A Chromium or Chrome that is installed is taken; where there is none, root installs
# Debian's package, with fonts.
#
# MRCR_BROWSER   the browser to take, by its path
#
# Takes half a minute and 500 MB the first time, then no time. Playwright, which drives it, is one of
# the pinned packages of requirements/dev.txt; it downloads no browser of its own.
set -euo pipefail
exec 3>&1 1>&2 # stdout is for the result alone

names=(chromium chromium-browser google-chrome google-chrome-stable)

say() { printf 'browser environment: %s\n' "$*" >&2; }
fail() {
  say "$*"
  exit 1
}

apt() {
  DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0 \
    -o Dpkg::Lock::Timeout=300 "$@" >/dev/null
}

runs() { # Ubuntu's package is a script that asks for a snap: only a browser tells its version.
  [[ $("$1" --version 2>/dev/null) =~ (Chromium|Chrome)\ [0-9]+ ]]
}

find_browser() {
  local name path
  for name in "${names[@]}"; do
    path=$(command -v "$name") || continue
    if runs "$path"; then
      printf '%s\n' "$path"
      return
    fi
  done
  return 1
}

install_browser() {
  command -v apt-get >/dev/null || fail "no Chromium or Chrome found; install one"
  ((EUID == 0)) || fail "no Chromium or Chrome found; run this as root, or install one"
  say "installing Debian's chromium"
  apt update
  apt install --yes --no-install-recommends chromium fonts-liberation
}

if (($# > 0)); then fail "usage: install.sh"; fi
if [[ ${MRCR_BROWSER:-} ]]; then
  runs "$MRCR_BROWSER" || fail "MRCR_BROWSER=$MRCR_BROWSER is no Chromium or Chrome that runs"
  browser=$MRCR_BROWSER
elif ! browser=$(find_browser); then
  install_browser
  browser=$(find_browser) || fail "what was installed does not run; set MRCR_BROWSER to a browser"
fi
say "using $browser"
printf '%s\n' "$browser" >&3
