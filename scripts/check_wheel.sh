#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds the wheel and uses it from an environment of its own, away from the tree.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
export PATH="$root/build/env/bin:$PATH"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

python -m pip wheel . --quiet --disable-pip-version-check --no-build-isolation --no-deps --wheel-dir "$work/dist"
wheel=$(echo "$work"/dist/*.whl)
case $wheel in
    *-abi3-*) ;;
    *) echo "the wheel is not for the stable ABI: $wheel" >&2; exit 1 ;;
esac
python -m venv --system-site-packages "$work/env"
# The environment of the tests gives NumPy; the package comes from the wheel alone.
python -c 'import site, sys; open(sys.argv[1], "w").write(site.getsitepackages()[0] + "\n")' \
    "$(echo "$work"/env/lib/python*/site-packages)/tests.pth"
"$work/env/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --no-index "$wheel"
cd "$work"
"$work/env/bin/python" - <<'PY'
import numpy as np
import stoker

assert "dist" not in stoker.__file__ and "site-packages" in stoker.__file__, stoker.__file__
images = np.arange(10 * 4 * 4 * 3, dtype=np.uint8).reshape(10, 4, 4, 3)
loader = stoker.Loader((images, np.arange(10)), "to(u8,nhwc)", batch=4, shuffle=False)
seen = [np.from_dlpack(batch).copy() for batch, labels in loader]
assert (np.concatenate(seen) == images).all()
print(f"the wheel works: {stoker.__file__.rsplit('/', 2)[-2]} {stoker.__version__}")
PY
echo "wheel: $(basename "$wheel"), $(($(stat -c %s "$wheel") / 1024)) KiB"
