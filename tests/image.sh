#!/usr/bin/env bash
# Checks that the program builds from exactly the files that deploy/Dockerfile copies.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# `COPY A B ./` in the first stage copies files into the folder, `COPY A A` a folder as it is.
awk '/^FROM/ { stage++ } stage == 1 && /^COPY/' deploy/Dockerfile | while read -r _ sources; do
  read -ra words <<<"$sources"
  target=${words[-1]}
  for source in "${words[@]:0:${#words[@]}-1}"; do
    if [ "$target" = ./ ]; then cp -r "$source" "$folder/"; else mkdir -p "$folder/$(dirname "$target")"; cp -r "$source" "$folder/$target"; fi
  done
done
# With the crates that are built already; only our own are checked again, since they are in another folder.
cargo check --locked --quiet --bin countersign --manifest-path "$folder/Cargo.toml" --target-dir target
