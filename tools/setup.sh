#!/usr/bin/env bash
# Installs what the build needs, and nothing that is already there: on Debian or Ubuntu with apt, on macOS with Homebrew
# (written, not tested). Run by `make`; safe to run again. Usage: setup.sh [tests|fuzz]; with `tests` also what only they
# need: a compiler for 64-bit Arm and an emulator of it; with `fuzz` clang and its runtime.
set -euo pipefail
also_for=${1:-}

if [ "$(uname)" = Darwin ]; then
  command -v brew >/dev/null || { echo "setup: install Homebrew first: https://brew.sh" >&2; exit 1; }
  xcode-select -p >/dev/null 2>&1 || { echo "setup: install the compiler first: xcode-select --install" >&2; exit 1; }
  packages=(cmake ninja nlohmann-json fmt cli11 googletest google-benchmark mlx)  # libedit comes with the system
  export PATH="$PATH:${CARGO_HOME:-$HOME/.cargo}/bin"
  command -v cargo >/dev/null || packages+=(rust)
  missing=()
  for package in "${packages[@]}"; do
    brew list --versions "$package" >/dev/null 2>&1 || missing+=("$package")
  done
  if [ ${#missing[@]} -eq 0 ]; then exit 0; fi
  echo "setup: installing ${missing[*]}" >&2
  brew install --quiet "${missing[@]}"
  exit 0
fi

packages=(g++ make cmake ninja-build nlohmann-json3-dev libfmt-dev libcli11-dev libedit-dev libgtest-dev libbenchmark-dev python3-dev python3-venv)
export PATH="$PATH:${CARGO_HOME:-$HOME/.cargo}/bin"
command -v cargo >/dev/null || packages+=(cargo-web rustc-web)
if [ "$also_for" = tests ] && [ "$(uname -m)" = x86_64 ]; then
  packages+=(g++-aarch64-linux-gnu qemu-user googletest)
fi

if [ "$also_for" = fuzz ]; then
  packages+=(clang-14 libclang-rt-14-dev)
fi

missing=()
if command -v dpkg-query >/dev/null; then
  for package in "${packages[@]}"; do
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)" = installed ] || missing+=("$package")
  done
elif ! command -v cmake >/dev/null; then
  echo "setup: this is not a Debian system; install: ${packages[*]}" >&2
  exit 1
fi
if [ ${#missing[@]} -eq 0 ]; then exit 0; fi

echo "setup: installing ${missing[*]}" >&2
as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || { echo "setup: not root and no sudo; install these packages by hand: ${missing[*]}" >&2; exit 1; }
  as_root=(sudo)
fi
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
