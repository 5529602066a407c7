#!/usr/bin/env bash
# Passes all tests: formatting, lints, documentation, the dependencies' licences and known weaknesses, and every test against real stand-ins.
# Installs what is missing where it may, and says plainly what is missing where it may not.
set -euo pipefail
cd "$(dirname "$0")/.."

# program → Debian package. Redis is one of the two stores; Chromium looks at the playground as a person would; faketime
# brings the library by which the nemesis sets a process's clock.
declare -A packages=([redis-server]=redis-server [chromium]=chromium [chromedriver]=chromium-driver [faketime]=faketime)
missing=()
for program in redis-server chromium chromedriver faketime; do
  command -v "$program" >/dev/null || missing+=("${packages[$program]}")
done
if [ ${#missing[@]} -gt 0 ]; then
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "Installing ${missing[*]} …"
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
  else
    echo "Missing: ${missing[*]}. The tests need them; on Debian: sudo apt-get install ${missing[*]}" >&2
    exit 1
  fi
fi

step() { printf '\n== %s ==\n' "$1"; }

step "formatting"
cargo fmt --all --check
step "lints"
cargo clippy --locked --workspace --all-targets --quiet -- -D warnings
step "documentation"
RUSTDOCFLAGS="-D warnings" cargo doc --locked --workspace --no-deps --quiet --document-private-items
step "dependencies"
tests/dependencies.sh
step "tests"
# The property tests try the same cases every time here; `cargo test` alone draws new ones.
PROPTEST_RNG_SEED="${PROPTEST_RNG_SEED:-1}" cargo test --locked --workspace --quiet
