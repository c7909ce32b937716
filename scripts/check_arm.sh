#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The tree built for 64-bit Arm, warnings as errors, and run by QEMU: each NEON kernel against the scalar one, the C tests,
# and the command beside the one in build/, which must give the same bytes. QEMU shows that results are right, not how
# fast they come.
#
# Left out: check_loader_life, because QEMU cannot fork a process that has threads.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ "$(uname -m)" = aarch64 ]; then
    echo "check_arm: this machine is 64-bit Arm itself: make test runs these kernels"
    exit 0
fi
scripts/setup.sh arm
export PATH="$PWD/build/env/bin:$PATH"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

[ -f build-arm/build.ninja ] || meson setup build-arm --cross-file scripts/aarch64.ini --werror >"$work/setup.log" 2>&1 || {
    cat "$work/setup.log"
    exit 1
}
ninja -C build-arm --quiet
mapfile -t tests < <(meson test -C build-arm --no-rebuild --list 2>/dev/null | sed 's/.*: *//' | grep -vx check_loader_life)
meson test -C build-arm --no-rebuild --print-errorlogs --timeout-multiplier 10 --quiet "${tests[@]}"

here=build/stoker
arm=(qemu-aarch64 -L build/arm64 build-arm/stoker)
case $("${arm[@]}" --version) in
    *"(neon)") ;;
    *) echo "check_arm: NEON was not chosen" >&2; exit 1 ;;
esac
STOKER_CPU=neon "${arm[@]}" --version >/dev/null

# Pictures drawn, read and resampled: the same bytes on both machines.
make --no-print-directory build >"$work/build.log" 2>&1 || { cat "$work/build.log"; exit 1; }
for kind in photos cifar; do
    "$here" sample "$work/$kind" --kind $kind --count 40 --seed 3 >/dev/null
    "${arm[@]}" sample "$work/$kind-arm" --kind $kind --count 40 --seed 3 >/dev/null
    diff -rq "$work/$kind" "$work/$kind-arm"
done
sheets=0
for ops in 'random_resized_crop(160) random_horizontal_flip' 'resize(96,bicubic) center_crop(90)' 'resize(300)' \
    'grayscale resize(40) random_crop(32,padding=4)'; do
    for kind in photos cifar; do
        "$here" show "$work/$kind" --ops "$ops" --count 6 -o "$work/here.png" >/dev/null
        "${arm[@]}" show "$work/$kind" --ops "$ops" --count 6 -o "$work/arm.png" >/dev/null
        cmp "$work/here.png" "$work/arm.png"
        sheets=$((sheets + 1))
    done
done
echo "check_arm: ${#tests[@]} C tests passed, $sheets sheets and two datasets are the same on x86-64 and aarch64 (under QEMU)"
