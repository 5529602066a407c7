#!/usr/bin/env bash
# Checks the crates this project is built from: known weaknesses, licences, bans, sources (.deny.toml).
# The list of known weaknesses is fetched from github.com; where it cannot be had, that is said and the rest is checked.
# With --strict, what cannot be checked is an error: the weekly workflow runs it so.
set -euo pipefail
cd "$(dirname "$0")/.."

strict=${1:-}
not_checked() {
  echo "NOT CHECKED: $1" >&2
  if [ "$strict" = --strict ]; then exit 1; fi
}

version=0.20.2
tools=target/tools
deny=$tools/bin/cargo-deny
if [ "$("$deny" --version 2>/dev/null)" != "cargo-deny $version" ]; then
  if command -v cargo-deny >/dev/null && [ "$(cargo-deny --version)" = "cargo-deny $version" ]; then
    deny=$(command -v cargo-deny)
  else
    echo "Installing cargo-deny $version into $tools …"
    # It runs for a second: what takes long is to build it.
    export CARGO_PROFILE_DEV_DEBUG=0 CARGO_INCREMENTAL=0
    if ! cargo install --quiet --locked --version "$version" --no-default-features --profile dev --root "$tools" cargo-deny; then
      not_checked "the dependencies. cargo-deny $version cannot be installed; try: cargo install --locked cargo-deny"
      exit 0
    fi
  fi
fi

checks=(bans licenses sources)
if timeout 60 "$deny" --config .deny.toml fetch db >/dev/null 2>&1; then
  checks+=(advisories)
else
  not_checked "known weaknesses of the dependencies. The advisory database cannot be fetched from github.com."
fi
# The check reads the manifests of all crates, those of other systems too, and fetches none itself.
if ! cargo fetch --locked --quiet; then
  not_checked "the dependencies. The crates cannot be fetched."
  exit 0
fi
"$deny" --log-level error --offline --config .deny.toml check --hide-inclusion-graph "${checks[@]}"
