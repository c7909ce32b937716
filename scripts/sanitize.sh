#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The C tests and the command under AddressSanitizer + UndefinedBehaviorSanitizer, then under ThreadSanitizer.
#
#   scripts/sanitize.sh [address,undefined|thread]…     both where none is named
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH="$PWD/build/env/bin:$PATH"
export ASAN_OPTIONS=detect_leaks=1:abort_on_error=0:strict_string_checks=1:allocator_may_return_null=1
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1

# ThreadSanitizer of older compilers cannot map its shadow where the kernel spreads addresses over more bits.
calm=()
if command -v setarch >/dev/null && setarch -R true 2>/dev/null; then calm=(setarch -R); fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for kind in "${@:-address,undefined thread}"; do
    for sanitizer in $kind; do
        folder=build-${sanitizer%%,*}
        start=$SECONDS
        [ -f "$folder/build.ninja" ] || meson setup "$folder" -Db_sanitize="$sanitizer" -Db_lundef=false \
            -Dbuildtype=debugoptimized -Dc_args=-w >"$work/setup.log" 2>&1 || { cat "$work/setup.log"; exit 1; }
        ninja -C "$folder" --quiet
        ${calm[@]+"${calm[@]}"} meson test -C "$folder" --no-rebuild --print-errorlogs --timeout-multiplier 10 --quiet

        # The command end to end: draws datasets, lists them, runs the loader over them, makes a sheet.
        stoker=("${calm[@]+"${calm[@]}"}" "$folder/stoker")
        rm -rf "$work/photos" "$work/cifar"
        "${stoker[@]}" sample "$work/photos" --count 24 --seed 1 >/dev/null
        "${stoker[@]}" sample "$work/cifar" --kind cifar --count 600 --seed 1 >/dev/null
        "${stoker[@]}" ls "$work/photos" >/dev/null
        "${stoker[@]}" ls "$work/cifar" >/dev/null
        photos='random_resized_crop(224) random_horizontal_flip normalize(imagenet) to(f32,nchw)'
        cifar='random_crop(32,padding=4) random_horizontal_flip normalize(cifar10) to(f32,nchw)'
        "${stoker[@]}" bench "$work/photos" --ops "$photos" --batch 7 --epochs 2 --threads 3 --json >/dev/null
        "${stoker[@]}" bench "$work/cifar" --ops "$cifar" --batch 64 --epochs 3 --threads 3 --json >/dev/null
        "${stoker[@]}" show "$work/photos" --ops "$photos" --batch 9 -o "$work/sheet.png" >/dev/null
        odd=${STOKER_TEST_DATA:-../shared/data}/odd
        if [ -d "$odd" ]; then
            "${stoker[@]}" ls "$odd" >/dev/null
        else
            echo "sanitize: no odd files at $odd: that part is left out"
        fi
        echo "sanitize: $sanitizer: clean ($((SECONDS - start)) s)"
    done
done
