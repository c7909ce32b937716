#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs every fuzz target for some seconds each, from its seeds and from odd files where there are some; a crash fails.
#
#   scripts/fuzz.sh [SECONDS]      default 30
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH="$PWD/build/env/bin:$PATH"
seconds=${1:-30}
folder=build-fuzz
data=${STOKER_TEST_DATA:-../shared/data}

[ -f "$folder/build.ninja" ] || CC=clang meson setup "$folder" -Dbuildtype=debugoptimized -Db_lundef=false \
    -Db_sanitize=address,undefined -Dfuzz=true >"$folder.log" 2>&1 || { cat "$folder.log"; exit 1; }
rm -f "$folder.log"
ninja -C "$folder" --quiet
targets=("$folder"/fuzz/fuzz_*)
found=0
for target in "${targets[@]}"; do
    [ -f "$target" ] && [ -x "$target" ] || continue
    found=$((found + 1))
    name=$(basename "$target")
    corpus=$folder/corpus/$name
    mkdir -p "$corpus"
    seeds=()
    [ -d "fuzz/seeds/$name" ] && seeds+=("fuzz/seeds/$name")
    if [ "$name" = fuzz_jpeg ]; then # small sound files to begin with
        mkdir -p "$folder/seeds-jpeg"
        python - "$folder/seeds-jpeg" <<'PY'
import itertools, sys
from PIL import Image
for side, sampling, restart, mode in itertools.product((9, 33), (0, 1, 2), (0, 1, 3), ("RGB", "L")):
    image = Image.radial_gradient("L").resize((side, side + 4)).convert(mode)
    image.save(f"{sys.argv[1]}/{side}-{sampling}-{restart}-{mode}.jpg", subsampling=sampling, restart_marker_blocks=restart)
PY
        seeds+=("$folder/seeds-jpeg")
    fi
    if [ "$name" = fuzz_dct ] || [ "$name" = fuzz_pack ]; then # a small pack, and its payloads
        rm -rf "$folder/seeds-pack" "$folder/seeds-dct"
        mkdir -p "$folder/seeds-pack" "$folder/seeds-dct"
        python - "$folder" <<'PY'
import itertools, subprocess, sys
from pathlib import Path
from PIL import Image
folder = Path(sys.argv[1])
sys.path.insert(0, "tests")
import pack_reader
(folder / "seeds-pack" / "data" / "a").mkdir(parents=True)
for side, sampling, mode in itertools.product((9, 41), (0, 1, 2), ("RGB", "L")):
    image = Image.radial_gradient("L").resize((side, side + 4)).convert(mode)
    image.save(folder / "seeds-pack" / "data" / "a" / f"{side}-{sampling}-{mode}.jpg", subsampling=sampling)
for mode in ("dct", "raw", "keep"):
    path = folder / "seeds-pack" / f"{mode}.stk"
    subprocess.run([folder / "stoker", "pack", folder / "seeds-pack" / "data", path, "--mode", mode], check=True, stdout=-3)
for i, sample in enumerate(pack_reader.read(folder / "seeds-pack" / "dct.stk").samples):
    (folder / "seeds-dct" / str(i)).write_bytes(sample.payload)
PY
        rm -r "$folder/seeds-pack/data"
        seeds+=("$folder/seeds-${name#fuzz_}")
    fi
    if [ "$name" = fuzz_image ]; then
        for odd in "$data/odd/fuzz-jpeg" "$data/odd/jpeg" "$data/odd/png" "$data/odd/webp"; do
            [ -d "$odd" ] && seeds+=("$odd")
        done
    fi
    "$target" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=4096 -print_final_stats=1 -verbosity=0 \
        -artifact_prefix="$folder/$name-" "$corpus" "${seeds[@]+"${seeds[@]}"}" 2>"$folder/$name.log" ||
        { tail -40 "$folder/$name.log" >&2; exit 1; }
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$folder/$name.log")
    echo "fuzz: $name: ${runs:-?} runs in $seconds s, no fault"
done
[ "$found" -gt 0 ] || { echo "fuzz: no targets were built in $folder/fuzz" >&2; exit 1; }
