#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Makes the Python environment of one peer, once, beside the project's own, keyed by the peer's requirements; prints its Python.
#
#   bench/peers/setup.sh dali|ffcv|grain|spdl|tfdata|turboloader
#
# Where that fails the reason is the last line of stderr, and nothing half-made is kept.
set -euo pipefail
cd "$(dirname "$0")"
name=$1
[ -f "$name.txt" ] || { echo "no peer of this name: $name" >&2; exit 2; }

root=()
[ "$(id -u)" = 0 ] || root=(sudo -n)
packages() { # packages PACKAGE…: Debian's or Ubuntu's, those that are missing
    local missing=() package
    for package in "$@"; do
        dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
    done
    [ ${#missing[@]} = 0 ] && return
    ${root[@]+"${root[@]}"} env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 install -y \
        --no-install-recommends "${missing[@]}" >&2
}

base=$(readlink -f ../../build/env)
python=$base/bin/python
key=$( (cat "$name.txt" setup.sh; "$python" --version; echo "$base") | sha256sum | cut -c1-16)
env=${XDG_CACHE_HOME:-$HOME/.cache}/stoker/peer-$name-$key
stamp=$env/.stoker-ready
if [ ! -f "$stamp" ]; then
    echo "setup: making the environment of $name in $env" >&2
    rm -rf "$env"
    case $name in
        ffcv) packages libopencv-dev libturbojpeg0-dev pkg-config g++ ;;
        spdl) packages ffmpeg ;;
    esac
    "$python" -m venv "$env"
    pip=("$env/bin/python" -m pip install --quiet --quiet --disable-pip-version-check --no-input)
    if [ "$name" = ffcv ]; then # built here; PyTorch comes from the project's environment
        "$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))' >"$("$env/bin/python" -c \
            'import sysconfig; print(sysconfig.get_path("purelib"))')/base.pth"
        grep -v '^ffcv' "$name.txt" >"$env/first.txt"
        "${pip[@]}" -r "$env/first.txt" >&2
        "${pip[@]}" --no-build-isolation --no-deps "$(grep '^ffcv' "$name.txt")" >&2
    else
        "${pip[@]}" -r "$name.txt" >&2
    fi
    touch "$stamp"
fi
echo "$env/bin/python"
