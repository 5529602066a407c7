#!/usr/bin/env bash
# The compiler of the project's own crates while all tests are built: lints each crate and writes its documentation in the
# same build, for which `cargo clippy` and `cargo doc` would check every crate and each dependency once more.
# Cargo calls it as `rustc.sh RUSTC ARGUMENTS…` (RUSTC_WORKSPACE_WRAPPER).
set -euo pipefail
rustc=$1
shift
# clippy-driver is a rustc that lints as well. What Cargo asks of the compiler itself is not for it.
[[ " $* " == *" --crate-name ___ "* || " $* " != *" --crate-name "* ]] && exec "$rustc" "$@"
CLIPPY_ARGS="-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__" clippy-driver "$rustc" "$@"

# A library, not one of its tests: its documentation from the same arguments, less what says how code is made.
[[ "${DOCUMENTATION:-}" != no && " $* " == *" --crate-type lib "* && " $* " != *" --test "* && " $* " == *" --emit="*link* ]] || exit 0
arguments=()
while [ $# -gt 0 ]; do
  case $1 in
    --emit=* | --json=* | --diagnostic-width=* | --error-format=*) ;;
    -C | --out-dir) shift ;;
    *) arguments+=("$1") ;;
  esac
  shift
done
exec rustdoc "${arguments[@]}" --document-private-items -D warnings -o "${CARGO_TARGET_DIR:-target}/doc"
