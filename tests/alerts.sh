#!/usr/bin/env bash
# Checks the alerts and the dashboards: that the rules are valid and do what their tests say, that each alert has a test that
# fires and one that doesn't and a section in docs/operating.md, and that they name only metrics that the program has.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v promtool >/dev/null; then
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "Installing prometheus …"
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    apt-get install -y -qq --no-install-recommends prometheus >/dev/null
  else
    echo "Missing: promtool. The test needs it; on Debian: sudo apt-get install prometheus" >&2
    exit 1
  fi
fi

promtool check rules deploy/alerts.yaml
promtool test rules deploy/alerts_test.yaml

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
missing=0
complain() {
  echo "$1" >&2
  missing=1
}

# Each query of a dashboard, as a rule of its own, with values for Grafana's variables.
# shellcheck disable=SC2016
{
  echo "groups:"
  echo "  - name: dashboards"
  echo "    rules:"
  number=0
  while read -r query; do
    number=$((number + 1))
    printf '      - record: query:%d\n        expr: %s\n' "$number" "$query"
  done < <(sed -nE 's/^ *"expr": (".*"),?$/\1/p' deploy/grafana/*.json |
    sed -e 's/\$__rate_interval/5m/g; s/\$__range/1d/g; s/\$job/countersign/g; s/\$instance/.*/g')
} >"$folder/dashboards.yaml"
promtool check rules "$folder/dashboards.yaml"
for dashboard in deploy/grafana/*.json; do
  python3 -m json.tool "$dashboard" >/dev/null || complain "$dashboard is not JSON."
done

# A name stands in the code as a whole word in quotation marks.
while read -r metric; do
  grep -rqF --include='*.rs' "\"${metric%_bucket}\"" src || grep -rqF --include='*.rs' "\"${metric%_count}\"" src || grep -rqF --include='*.rs' "\"${metric%_sum}\"" src || complain "$metric is no metric of the program."
done < <(grep -ohE 'countersign_[a-z_]+' deploy/alerts.yaml deploy/alerts_test.yaml deploy/grafana/*.json | sort -u)

while read -r alert; do
  fires=$(grep -A1 -E "alertname: $alert\$" deploy/alerts_test.yaml | grep -c 'exp_alerts:$') || true
  quiet=$(grep -A1 -E "alertname: $alert\$" deploy/alerts_test.yaml | grep -c 'exp_alerts: \[\]$') || true
  [ "$fires" -ge 1 ] || complain "$alert has no test in which it fires."
  [ "$quiet" -ge 1 ] || complain "$alert has no test in which it doesn't fire."
  grep -q "^### $alert\$" docs/operating.md || complain "docs/operating.md does not say what to do about $alert."
done < <(sed -n 's/^ *- alert: //p' deploy/alerts.yaml)
while read -r alert; do
  grep -q "alert: $alert\$" deploy/alerts.yaml || complain "docs/operating.md names $alert, which is no alert."
done < <(sed -nE 's/^### (Countersign[A-Za-z]+)$/\1/p' docs/operating.md)
exit $missing
