#!/usr/bin/env bash
# Renders the chart in deploy/helm in several variants, checks each manifest against the schemas of Kubernetes, and checks
# that values that cannot work are refused. Helm and the schemas come as Python packages, into target/tools.
set -euo pipefail
cd "$(dirname "$0")/.."

tools=target/tools/chart
helm=0.2.2 validate=1.37.0
if [ ! -d "$tools/helm_python_sdk-$helm.dist-info" ] || [ ! -d "$tools/kubernetes_validate-$validate.dist-info" ]; then
  echo "Installing Helm (helm-python-sdk $helm) and kubernetes-validate $validate into $tools …"
  rm -rf "$tools"
  if ! python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --target "$tools" \
    "helm-python-sdk==$helm" "kubernetes-validate==$validate"; then
    echo "Missing: helm-python-sdk $helm and kubernetes-validate $validate. The test needs them and Python's pip." >&2
    exit 1
  fi
fi
PYTHONPATH=$tools exec python3 tests/chart.py
