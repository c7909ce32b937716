#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# All set-up, and nothing twice: the system's packages that are missing (Debian or Ubuntu, as root or with sudo) and one
# Python environment outside the tree, keyed by requirements.txt and the Python in use. Works without network when all is
# there. Ends with build/env pointing at the environment.
#
#   scripts/setup.sh          what building, testing and the demo need
#   scripts/setup.sh lint     also clang, clang-tidy and cppcheck
#   scripts/setup.sh arm      also a compiler for 64-bit Arm, QEMU, and in build/arm64 Arm's libraries: a folder of its own,
#                             outside the system's packages
#
# STOKER_ENV   another place for the environment (repaired in place, never deleted)
# PYTHON       the Python to make it from (3.10 or newer)
set -euo pipefail
cd "$(dirname "$0")/.."

say() { echo "setup: $*" >&2; }
die() { say "$*"; exit 1; }

# ---- the system's packages: "what shows that it is there" → "package"

missing=()
need() { # need PACKAGE TEST…
    local package=$1
    shift
    "$@" >/dev/null 2>&1 || missing+=("$package")
}
have() { command -v "$1"; }
header() { echo "#include <$1>" | cc -E -x c - ; }
jpeg_header() { printf '#include <stddef.h>\n#include <stdio.h>\n#include <jpeglib.h>\n' | cc -E -x c - ; }

need gcc have gcc
need g++ have g++
need libc6-dev header stdio.h
need pkg-config have pkg-config
need libjpeg-dev jpeg_header
need libspng-dev header spng.h
need libwebp-dev header webp/decode.h
need libxxhash-dev header xxhash.h
need zlib1g-dev header zlib.h
need libcmocka-dev sh -c 'printf "#include <stdarg.h>\n#include <stddef.h>\n#include <stdint.h>\n#include <setjmp.h>\n#include <cmocka.h>\n" | cc -E -x c -'
if [ "${1:-}" = lint ]; then
    need clang have clang
    need clang-tidy have clang-tidy
    need cppcheck have cppcheck
fi
if [ "${1:-}" = arm ]; then
    need gcc-aarch64-linux-gnu have aarch64-linux-gnu-gcc
    need qemu-user have qemu-aarch64
fi

# ---- Python

usable_python() { # 3.10 or newer, able to make an environment, with its headers
    "$1" - <<'PY' 2>/dev/null
import ensurepip, os, sys, sysconfig, venv
sys.exit(sys.version_info < (3, 10) or not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")))
PY
}
find_python() {
    local candidate
    for candidate in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11 python3.10 /usr/bin/python3}; do
        if have "$candidate" >/dev/null && usable_python "$candidate"; then
            command -v "$candidate"
            return 0
        fi
    done
    return 1
}
if ! find_python >/dev/null; then
    missing+=(python3 python3-venv python3-dev)
fi

# The demo's real data. Where the distribution does not have it, the demo draws its own.
if [ ! -d /usr/share/datasets/fashion-mnist ]; then
    wanted=(dataset-fashion-mnist)
else
    wanted=()
fi

apt() { # as root or through sudo, never asking
    local root=()
    if [ "$(id -u)" != 0 ]; then
        have sudo >/dev/null || die "these packages are missing and there is no sudo: ${missing[*]} (install them, then run again)"
        root=(sudo)
    fi
    ${root[@]+"${root[@]}"} env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 "$@"
}
fetch_lists() { # once a run
    if [ -z "${fetched:-}" ]; then
        apt update >&2 || say "apt-get update failed; trying with the lists at hand"
        fetched=1
    fi
}
if [ ${#missing[@]} -gt 0 ]; then
    have apt-get >/dev/null || die "missing: ${missing[*]} (named as Debian names them), and there is no apt-get here: install them, then run again"
    say "installing ${missing[*]}"
    if ! apt install -y --no-install-recommends "${missing[@]}" >/dev/null 2>&1; then
        fetch_lists
        apt install -y --no-install-recommends "${missing[@]}" >&2 || die "could not install ${missing[*]}"
    fi
fi
if [ "${1:-}" = lint ]; then # what clang's sanitizers and fuzzer link with, packaged by clang's version
    links_sanitizers() {
        echo 'int LLVMFuzzerTestOneInput(void); int LLVMFuzzerTestOneInput(void) { return 0; }' |
            clang -fsanitize=address,undefined,fuzzer -x c - -o /dev/null
    }
    if ! links_sanitizers >/dev/null 2>&1; then
        runtime=libclang-rt-$(clang -dumpversion | cut -d. -f1)-dev
        say "installing $runtime"
        apt install -y --no-install-recommends "$runtime" >/dev/null 2>&1 || { fetch_lists; apt install -y --no-install-recommends "$runtime" >&2; } ||
            die "could not install $runtime, which clang's sanitizers and fuzzer need"
    fi
fi
if [ ${#wanted[@]} -gt 0 ] && have apt-get >/dev/null && { [ "$(id -u)" = 0 ] || have sudo >/dev/null; }; then
    if ! apt-cache show "${wanted[@]}" >/dev/null 2>&1 && [ -z "$(ls -A /var/lib/apt/lists 2>/dev/null | grep -v -e lock -e partial || true)" ]; then
        fetch_lists
    fi
    if apt-cache show "${wanted[@]}" >/dev/null 2>&1; then
        say "installing ${wanted[*]} (the demo's real data)"
        apt install -y --no-install-recommends "${wanted[@]}" >/dev/null 2>&1 ||
            { fetch_lists; apt install -y --no-install-recommends "${wanted[@]}" >/dev/null 2>&1; } ||
            say "could not install ${wanted[*]}: the demo will draw its own data"
    fi
fi

python=$(find_python) || die "no Python 3.10 or newer with venv and headers was found (looked at: ${PYTHON:-python3, python3.14 … python3.10}); install python3, python3-venv and python3-dev, or name one with PYTHON="
version=$("$python" -c 'import platform, sys; print("%d.%d.%d-%s" % (*sys.version_info[:3], platform.machine()))')
key=$( (cat requirements.txt; echo "$version") | sha256sum | cut -c1-16)

if [ -n "${STOKER_ENV:-}" ]; then
    env=$STOKER_ENV
else
    env=${XDG_CACHE_HOME:-$HOME/.cache}/stoker/env-$key
fi
mkdir -p "$(dirname "$env")"
env=$(cd "$(dirname "$env")" && pwd)/$(basename "$env")
stamp=$env/.stoker-ready

ready() { [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$key" ] && [ -x "$env/bin/python" ]; }

# Two runs at once: the second waits and finds it done. The stamp is written last, so a half-made environment is never used.
if ! ready; then
    exec 9>"$env.lock"
    if ! flock -n 9; then
        say "another run is making $env; waiting for it"
        flock 9
    fi
    if ! ready; then
        free=$(df -Pk "$(dirname "$env")" | awk 'NR == 2 { print int($4 / 1048576) }')
        say "making the Python environment (PyTorch and what it brings: about 5.6 GB, a few minutes) in $env; $free GB are free there"
        [ "$free" -ge 7 ] || die "too little room for it: 7 GB are needed. STOKER_ENV=DIR puts it elsewhere"
        [ -n "${STOKER_ENV:-}" ] || rm -rf "$env"
        "$python" -m venv "$env"
        "$env/bin/python" -m pip install --quiet --disable-pip-version-check --no-input -r requirements.txt >&2
        echo "$key" >"$stamp"
    fi
    exec 9>&-
fi

mkdir -p build
if [ "$(readlink build/env || true)" != "$env" ]; then
    rm -rf build/env build/build.ninja build/meson-private build/meson-info # meson remembers the Python that ran it
    ln -sfn "$env" build/env
fi

# ---- Arm's libraries, fetched and unpacked, not installed: nothing that the system has is replaced

arm_packages=(libc6-dev libjpeg-dev libspng-dev libwebp-dev libxxhash-dev zlib1g-dev libcmocka-dev)
arm_libraries() { # arm_libraries FOLDER
    local root=$1 work link sources=()
    work=$(mktemp -d)
    mkdir -p "$work"/{state/lists/partial,cache/archives/partial,sources.d} "$root/usr/lib"
    : >"$work/status"
    [ -f /etc/apt/sources.list ] && sources+=(/etc/apt/sources.list)
    for link in /etc/apt/sources.list.d/*; do [ -f "$link" ] && sources+=("$link"); done
    # Ubuntu keeps Arm's packages on another host.
    for link in ${sources[@]+"${sources[@]}"}; do
        sed -E 's#//([a-z0-9.-]*\.)?(archive|security)\.ubuntu\.com/ubuntu#//ports.ubuntu.com/ubuntu-ports#' "$link" \
            >"$work/sources.d/${link##*/}"
    done
    for_arm() {
        apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o APT::Sandbox::User="$(id -un)" \
            -o Dir::State="$work/state" -o Dir::State::status="$work/status" -o Dir::Cache="$work/cache" \
            -o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$work/sources.d" "$@"
    }
    say "fetching libraries for 64-bit Arm (12 MB) into $root"
    for_arm update >&2 || say "apt-get update failed for some lists; going on"
    for_arm install -y --no-install-recommends --download-only "${arm_packages[@]}" >&2 ||
        die "the package mirrors have no ${arm_packages[*]} for arm64"
    [ -e "$root/lib" ] || ln -s usr/lib "$root/lib"
    for link in "$work"/cache/archives/*.deb; do
        dpkg-deb --fsys-tarfile "$link" | tar -x --keep-directory-symlink -C "$root"
    done
    find "$root" -type l -lname '/*' | while read -r link; do ln -sfn "$root$(readlink "$link")" "$link"; done
    rm -rf "$work"
}
if [ "${1:-}" = arm ]; then
    key=$( (echo "${arm_packages[*]}"; cat /etc/os-release) | sha256sum | cut -c1-16)
    root=${XDG_CACHE_HOME:-$HOME/.cache}/stoker/arm64-$key
    mkdir -p "$(dirname "$root")"
    exec 9>"$root.lock"
    flock 9
    if [ ! -f "$root/.stoker-ready" ]; then
        have dpkg-deb >/dev/null || die "libraries for 64-bit Arm come from Debian's or Ubuntu's packages, and there is no dpkg-deb here"
        rm -rf "$root"
        arm_libraries "$root"
        touch "$root/.stoker-ready"
    fi
    exec 9>&-
    ln -sfn "$root" build/arm64
fi
