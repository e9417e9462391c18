#!/usr/bin/env bash
# Usage: check-release.sh TAG
#
# Checks that the checked-out commit may be released as TAG, such as v1.2.3: the tag, the package's
# version and the image that action.yml names agree, the image is named by digest too, and nothing
# else was changed since the commit that the image was built from. Prints, for $GITHUB_OUTPUT:
#
#   version   1.2.3
#   image     ghcr.io/OWNER/mrcr-action@sha256:…
#   named     ghcr.io/OWNER/mrcr-action:1.2.3
#   source    the commit that the image was built from
#   commit    the release commit itself
#   major     v1
set -euo pipefail

fail() {
  printf 'check-release.sh: %s\n' "$*" >&2
  exit 1
}

if (($# != 1)); then
  echo "usage: check-release.sh TAG" >&2
  exit 2
fi
tag=$1
cd "$(git rev-parse --show-toplevel)"

[[ $tag =~ ^v([0-9]+)\.[0-9]+\.[0-9]+$ ]] || fail "$tag: not a version such as v1.2.3"
major=v${BASH_REMATCH[1]}
version=$(sed -n 's/^__version__ = "\(.*\)"$/\1/p' src/mrcr_action/__init__.py)
[[ $tag == "v$version" ]] ||
  fail "$tag: the package's version is ${version:-not to be found} (src/mrcr_action/__init__.py)"

line=$(sed -n '/^runs:/,$s/^  image: *//p' action.yml)
pattern="^docker://(ghcr\.io/[a-z0-9._/-]+):([^@]+)@(sha256:[0-9a-f]{64})$"
[[ $line =~ $pattern ]] ||
  fail "$tag: action.yml has the image ${line:-(none)}, expected was" \
    "docker://ghcr.io/OWNER/NAME:$version@sha256:DIGEST; make the commit with release.sh"
name=${BASH_REMATCH[1]} image_tag=${BASH_REMATCH[2]} digest=${BASH_REMATCH[3]}
[[ $image_tag == "$version" ]] || fail "$tag: action.yml names the image's tag $image_tag"

changed=$(git diff --name-only HEAD^ HEAD)
[[ $changed == action.yml ]] ||
  fail "$tag: its commit changes ${changed//$'\n'/, }, expected was action.yml alone: the image" \
    "would not be what the commit says"

printf '%s\n' "version=$version" "image=$name@$digest" "named=$name:$version" \
  "source=$(git rev-parse HEAD^)" "commit=$(git rev-parse HEAD)" "major=$major"
