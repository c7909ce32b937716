#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Formatters, linters, the layers of the source tree, and warnings as errors with gcc and clang. Any finding fails.
#
#   scripts/lint.sh [format|layers|gcc|clang|tidy|cppcheck]…     all of them where none is named
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH="$PWD/build/env/bin:$PATH"
jobs=$(nproc)

c_files() { # every C file that git knows or would add
    git ls-files -co --exclude-standard -- '*.c' '*.h' | while read -r file; do if [ -f "$file" ]; then echo "$file"; fi; done
}

format() {
    local status=0
    ruff format --check --quiet . || status=1
    ruff check --quiet . || status=1
    c_files | xargs clang-format --dry-run -Werror || status=1
    return $status
}

layers() { python scripts/check_layers.py; }

with_compiler() { # warnings as errors: a build of its own, of all that is built
    local folder=build-lint-$1
    [ -f "$folder/build.ninja" ] || CC=$1 meson setup "$folder" --werror -Dbuildtype=debugoptimized >"$folder.log" 2>&1 || {
        cat "$folder.log"
        return 1
    }
    rm -f "$folder.log"
    ninja -C "$folder" --quiet
}
gcc() { with_compiler gcc; }
clang() { with_compiler clang; }

tidy() { # one process a core over the files that clang compiled
    [ -f build-lint-clang/build.ninja ] || with_compiler clang
    python - <<'PY' | xargs -P "$jobs" -n 4 clang-tidy -p build-lint-clang --quiet 2>/dev/null
import json, os
folder = "build-lint-clang"
files = {os.path.realpath(os.path.join(e["directory"], e["file"])) for e in json.load(open(f"{folder}/compile_commands.json"))}
for file in sorted(os.path.relpath(f) for f in files):
    if file.endswith(".c") and not file.startswith(("tests/", "build")):
        print(file)
PY
}

cppcheck() {
    command cppcheck --quiet --error-exitcode=1 --inline-suppr --std=c11 -j "$jobs" --enable=warning,portability \
        --suppress=missingIncludeSystem --suppress=normalCheckLevelMaxBranches --suppress=unknownMacro --suppress=invalidPointerCast \
        -D__GNUC__ -D__x86_64__ -Iinclude -Isrc src cli
}

for step in "${@:-format layers gcc clang tidy cppcheck}"; do
    for part in $step; do
        start=$SECONDS
        $part
        echo "lint: $part: clean ($((SECONDS - start)) s)"
    done
done
