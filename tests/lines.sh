#!/usr/bin/env bash
# Prints how large each room is: its lines of code (without blanks, comments and tests), its files and its public items.
# The stand-ins and the playground come last: the product is what stands above them.
set -euo pipefail
cd "$(dirname "$0")/.."

printf '%-28s %8s %6s %7s\n' room lines files public
apart="src/sandbox src/playground"
rooms=$(for folder in src/*/ src/capabilities/*/; do [ -f "$folder/Cargo.toml" ] && echo "${folder%/}"; done; echo src/app)
rooms=$(grep -vxF "${apart// /$'\n'}" <<<"$rooms")
total_lines=0 total_files=0 total_public=0
for room in $rooms $apart; do
  if [ "$room" = "${apart%% *}" ]; then
    printf '%-28s %8d %6d %7d\n' 'the product' "$total_lines" "$total_files" "$total_public"
  fi
  # The rooms within a room count for themselves.
  inner=$(for other in $rooms; do [[ $other == "$room"/* ]] && echo "$other"; done || true)
  files=$(find "$room" -name '*.rs' ! -name 'tests.rs' ! -name '*_tests.rs' ! -path '*/tests/*' | sort)
  for other in $inner; do files=$(grep -v "^$other/" <<<"$files" || true); done
  # shellcheck disable=SC2086
  read -r lines public < <(awk '
    FNR == 1 { testing = gated = 0 }
    # What is gated is one line, a module of another file or an import, or else the rest of the file.
    gated { gated = 0; if (/;$/) next; testing = 1 }
    /^#\[cfg\(test\)\]/ { gated = 1; next }
    testing || /^[[:space:]]*(\/\/|$)/ { next }
    { lines++ }
    /^[[:space:]]*pub (async )?(fn|struct|enum|trait|const|static|type|mod|unsafe)/ { public++ }
    END { print lines + 0, public + 0 }' $files)
  count=$(wc -l <<<"$files")
  printf '%-28s %8d %6d %7d\n' "$room" "$lines" "$count" "$public"
  total_lines=$((total_lines + lines)) total_files=$((total_files + count)) total_public=$((total_public + public))
done
printf '%-28s %8d %6d %7d\n' all "$total_lines" "$total_files" "$total_public"
