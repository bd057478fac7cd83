#!/usr/bin/env bash
# Builds the wheel, installs it into a new virtual environment, and runs tests/python there, outside the source tree.
# Everything lies under build/; the compiled objects stay there, so that a second run compiles what has changed.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD python=${PYTHON:-python3}

# What pip's build isolation would install anew for every build, and nanobind be compiled anew with it.
tools=build/wheel_tools
[ -x $tools/bin/pip ] || "$python" -m venv $tools
$tools/bin/python - <<'END' >$tools/requires.txt
import re
print(*re.findall(r'"([^"]+)"', re.search(r"^requires = \[(.*)\]", open("pyproject.toml").read(), re.M).group(1)), sep="\n")
END
$tools/bin/pip install --quiet --disable-pip-version-check --requirement $tools/requires.txt

rm -rf build/dist build/wheel_venv
if ! PATH="$root/$tools/bin:$PATH" $tools/bin/pip wheel . --no-deps --no-build-isolation --wheel-dir build/dist -v >build/wheel.log 2>&1; then
  grep -E 'error|FAILED|CMake Error' build/wheel.log >&2 || true
  tail -n 30 build/wheel.log >&2
  exit 1
fi

"$python" -m venv build/wheel_venv
build/wheel_venv/bin/pip install --quiet --disable-pip-version-check build/dist/foresay-*.whl "$(grep '^pytest==' tools/requirements.txt)"
cd build/wheel_venv
FORESAY_MODELS=$root/models exec bin/python -m pytest -q -p no:cacheprovider "$root/tests/python"
