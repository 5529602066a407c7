#!/usr/bin/env bash
# Checks that deploy/Dockerfile copies every file that the program is built from. The compiler listed them when it built
# the program for the tests; that the crates are found among what is copied is asked of cargo.
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
cargo metadata --locked --no-deps --format-version 1 --manifest-path "$folder/Cargo.toml" >/dev/null
missing=0
# Beside each library that was built stands a list of its files: lines of the form `FILE:`.
# Of each, the newest counts: earlier builds may have had files that are gone.
declare -A seen=()
mapfile -t libraries < <(ls -t target/debug/deps/libcountersign*.rlib 2>/dev/null)
[ ${#libraries[@]} -gt 0 ] || { echo "No library was built yet; the test command builds them first." >&2; exit 1; }
for library in "${libraries[@]}"; do
  name=${library%-*}
  [ -z "${seen[$name]:-}" ] || continue
  seen[$name]=yes
  list=$(basename "${library%.rlib}.d")
  while read -r file; do
    [ -e "$folder/$file" ] || { echo "deploy/Dockerfile does not copy $file, which the program is built from." >&2; missing=1; }
  done < <(sed -n "s/^\(src\|config\|deploy\|docs\|tests\|benches\)\(.*\):$/\1\2/p" "target/debug/deps/${list#lib}")
done
exit $missing
