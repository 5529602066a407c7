"""Renders the chart and checks what comes out; tests/chart.sh runs it."""

import re
import sys
import tomllib
from pathlib import Path

import helm_python
import kubernetes_validate
import yaml

CHART = "deploy/helm/countersign"
# The oldest version that the chart allows, and the newest whose schemas are there.
KUBERNETES = ["1.30", "1.37"]
# What the Prometheus operator adds; Kubernetes has no schema of it.
WITHOUT_SCHEMA = {"ServiceMonitor"}

CONFIG = '[approvals]\napprovers = ["S0123456789"]\n[email]\nchannel = "C0123456789"\n'

VARIANTS = {
    "sqlite": {"slack": {"mode": "http"}},
    "redis": {"store": {"kind": "redis"}, "replicas": 3, "slack": {"mode": "http"}},
    "socket": {},
    "everything": {
        "image": {"repository": "example.org/countersign", "digest": "sha256:" + "0" * 64},
        "imagePullSecrets": [{"name": "pull"}],
        "slack": {"mode": "http"},
        "store": {"kind": "redis"},
        "replicas": 3,
        "config": CONFIG,
        "env": [{"name": "COUNTERSIGN__UPGRADE__SERVICE_ACCOUNT", "value": "/etc/upgrade/key.json"}],
        "volumes": [{"name": "upgrade", "secret": {"secretName": "upgrade", "defaultMode": 0o440}}],
        "volumeMounts": [{"name": "upgrade", "mountPath": "/etc/upgrade", "readOnly": True}],
        "ingress": {
            "enabled": True,
            "className": "nginx",
            "annotations": {"example.org/issuer": "main"},
            "host": "countersign.example.org",
            "tlsSecret": "countersign-tls",
        },
        "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
        "networkPolicy": {
            "enabled": True,
            "from": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "ingress-nginx"}}}],
            "egress": [
                {
                    "to": [{"podSelector": {"matchLabels": {"app": "redis"}}}],
                    "ports": [{"port": 6379, "protocol": "TCP"}],
                }
            ],
        },
        "podAnnotations": {"example.org/team": "research"},
        "podLabels": {"example.org/tier": "bots"},
        "serviceAccount": {"annotations": {"example.org/role": "none"}},
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "tolerations": [{"key": "bots", "operator": "Exists"}],
        "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}},
        "priorityClassName": "bots",
    },
}

EXPECTED = {
    "sqlite": ["Service", "ServiceAccount", "StatefulSet"],
    "redis": ["Deployment", "PodDisruptionBudget", "Service", "ServiceAccount"],
    "socket": ["Service", "ServiceAccount", "StatefulSet"],
    "everything": [
        "ConfigMap",
        "Deployment",
        "Ingress",
        "NetworkPolicy",
        "PodDisruptionBudget",
        "Service",
        "ServiceAccount",
        "ServiceMonitor",
    ],
}

# Values that cannot work, with a part of what is said about them.
REFUSED = {
    "store.kind is": {"replicas": 2},
    "Slack allows an app 10": {"store": {"kind": "redis"}, "replicas": 5},
    "ingress.enabled needs slack.mode": {"ingress": {"enabled": True, "host": "a.example.org"}},
    "ingress.enabled needs ingress.host": {"slack": {"mode": "http"}, "ingress": {"enabled": True}},
    "graceSeconds": {"stop": {"graceSeconds": 25}},
    "mode": {"slack": {"mode": "carrier pigeon"}},
    "replica": {"replica": 3},
}

failures = []


def expect(holds, what):
    if not holds:
        failures.append(what)


def manifests(chart, values):
    rendered = chart.render(values, name="countersign", namespace="bots")
    notes = next(text for path, text in rendered.items() if path.endswith("NOTES.txt"))
    texts = [text for path, text in rendered.items() if path.endswith(".yaml")]
    return [one for text in texts for one in yaml.safe_load_all(text) if one], notes


def check_pod(variant, values, spec):
    """What every pod has to be like."""
    container = spec["containers"][0]
    environment = {entry["name"]: entry.get("value") for entry in container["env"]}
    expect(spec["securityContext"]["runAsNonRoot"], f"{variant}: the pod may run as root")
    expect(spec["securityContext"]["runAsUser"] == 10001, f"{variant}: another user than the image's")
    expect(not spec["automountServiceAccountToken"], f"{variant}: the pod has a token of the cluster")
    inner = container["securityContext"]
    expect(inner["readOnlyRootFilesystem"], f"{variant}: the root is writable")
    expect(not inner["allowPrivilegeEscalation"], f"{variant}: rights may grow")
    expect(inner["capabilities"] == {"drop": ["ALL"]}, f"{variant}: capabilities are kept")
    probes = {name: container[name + "Probe"]["httpGet"] for name in ["startup", "liveness", "readiness"]}
    paths = {name: probe["path"] for name, probe in probes.items()}
    expect(paths == {"startup": "/healthz", "liveness": "/healthz", "readiness": "/readyz"}, f"{variant}: {paths}")
    port = environment["COUNTERSIGN__SERVER__PORT"]
    expect(str(container["ports"][0]["containerPort"]) == port, f"{variant}: the probes ask another port")
    drain = int(environment["COUNTERSIGN__WORKERS__DRAIN"].rstrip("s"))
    pause = container["lifecycle"]["preStop"]["sleep"]["seconds"]
    grace = spec["terminationGracePeriodSeconds"]
    expect(grace >= drain + pause + 5, f"{variant}: killed {grace} s after the stop, while it drains")
    secrets = {entry["secretRef"]["name"] for entry in container["envFrom"]}
    expect(secrets == {"countersign"}, f"{variant}: the secrets come from {secrets}")
    mounted = {mount["mountPath"] for mount in container["volumeMounts"]}
    expect({"/var/lib/countersign", "/tmp"} <= mounted, f"{variant}: {mounted} is mounted")
    with_config = "--config=/etc/countersign/countersign.toml" in container["args"]
    expect(with_config == bool(values.get("config")), f"{variant}: the settings file is not as the values say")
    expect(container["resources"]["limits"]["memory"], f"{variant}: the memory has no limit")


def check_settings(variant, spec):
    """The variables in the pod are settings that the program knows."""
    page = Path("config/default.toml").read_text()
    sections, section = {}, None
    for line in page.splitlines():
        if found := re.match(r"\[(\w+)\]$", line):
            section = sections.setdefault(found[1], set())
        elif section is not None and (found := re.match(r"(?:# )?(\w+) = ", line)):
            section.add(found[1])
    for entry in spec["containers"][0]["env"]:
        parts = entry["name"].split("__")
        if parts[0] == "COUNTERSIGN":
            known = parts[2].lower() in sections.get(parts[1].lower(), ())
            expect(known, f"{variant}: config/default.toml does not know {entry['name']}")


def check(chart, variant, values):
    documents, notes = manifests(chart, values)
    kinds = sorted(one["kind"] for one in documents)
    expect(kinds == EXPECTED[variant], f"{variant}: {kinds} instead of {EXPECTED[variant]}")
    expect("countersign check" in notes, f"{variant}: the notes do not name the check")
    for one in documents:
        name = f"{variant}: {one['kind']}"
        if one["kind"] in WITHOUT_SCHEMA:
            continue
        for version in KUBERNETES:
            try:
                kubernetes_validate.validate(one, version, strict=True)
            except kubernetes_validate.ValidationError as error:
                failures.append(f"{name}, Kubernetes {version}: {error.message}")
        if one["kind"] in ("Deployment", "StatefulSet"):
            template = one["spec"]["template"]
            selected, labels = one["spec"]["selector"]["matchLabels"], template["metadata"]["labels"]
            expect(selected.items() <= labels.items(), f"{name}: it does not select its own pods")
            check_pod(variant, values, template["spec"])
            check_settings(variant, template["spec"])
            names = {volume["name"] for volume in template["spec"]["volumes"]}
            names |= {claim["metadata"]["name"] for claim in one["spec"].get("volumeClaimTemplates", [])}
            used = {mount["name"] for mount in template["spec"]["containers"][0]["volumeMounts"]}
            expect(used <= names, f"{name}: {used - names} is mounted and not there")
            spread = template["spec"].get("topologySpreadConstraints", [])
            expect(bool(spread) == (one["spec"]["replicas"] > 1), f"{name}: spread is {spread}")
        if one["kind"] == "ConfigMap":
            expect(tomllib.loads(one["data"]["countersign.toml"]) == tomllib.loads(CONFIG), f"{name}: other settings")
        if one["kind"] == "Ingress":
            paths = [path["path"] for rule in one["spec"]["rules"] for path in rule["http"]["paths"]]
            expect(paths == ["/slack/"], f"{name}: {paths} can be reached from outside")
    print(f"{variant}: {', '.join(kinds)}")


def main():
    for version in re.findall(r'^version = "(.*)"', Path("Cargo.toml").read_text(), re.M)[:1]:
        text = yaml.safe_load(Path(CHART, "Chart.yaml").read_text())
        expect(text["appVersion"] == version, f"the chart is of version {text['appVersion']}, the program {version}")
    report = helm_python.lint(CHART, strict=True)
    failures.extend(report["errors"])
    # An icon is only recommended.
    found = [one for one in report["messages"] if one["severity"] >= 2]
    failures.extend(f"lint: {one['path']}: {one['error']}" for one in found)
    with helm_python.Chart.load(CHART) as chart:
        for variant, values in VARIANTS.items():
            chart.validate_schema(values)
            check(chart, variant, values)
        for said, values in REFUSED.items():
            try:
                chart.validate_schema(values)
                chart.render(values, name="countersign", namespace="bots")
                failures.append(f"{values} is accepted")
            except helm_python.HelmError as error:
                expect(said in str(error), f"{values} is refused for another reason: {error}")
    for failure in failures:
        print(failure, file=sys.stderr)
    print(f"{len(VARIANTS)} variants rendered with Helm {helm_python.helm_sdk_version()}, {len(REFUSED)} refused")
    return 1 if failures else 0


sys.exit(main())
