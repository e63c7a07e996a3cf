//! The files for those who run a cluster say what programs understand, and what the command knows.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::support::crawl;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("config/cluster")
}

/// The documents of a file of YAML.
fn yaml(name: &str) -> Vec<Value> {
    let script = "import json, sys, yaml\n\
                  print(json.dumps(list(yaml.safe_load_all(open(sys.argv[1])))))";
    let path = folder().join(name);
    let out = Command::new("python3").args(["-c", script]).arg(path).output().unwrap();
    assert!(
        out.status.success(),
        "{name}: {} (the tests need python3-yaml: see tests/run)",
        String::from_utf8_lossy(&out.stderr)
    );
    serde_json::from_slice(&out.stdout).unwrap()
}

fn texts(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|one| one.as_str().unwrap()).collect()
}

/// Arguments of a worker have a folder of its own, the texts, and the cluster.
fn is_worker(arguments: &[&str]) {
    assert_eq!(arguments[0], "worker");
    for flag in ["--join", "--folder", "--texts", "--backup", "--seeds"] {
        assert!(arguments.contains(&flag), "{flag} is missing: {arguments:?}");
    }
    let known =
        ["--join", "--folder", "--texts", "--backup", "--seeds", "--config", "--until-done"];
    for flag in arguments.iter().filter(|word| word.starts_with("--")) {
        assert!(known.contains(flag), "{flag}");
    }
}

#[test]
fn the_compose_file_has_six_nodes_that_are_joined_before_workers_begin() {
    let compose = yaml("compose.yaml").pop().unwrap();
    let services = compose["services"].as_object().unwrap();
    let nodes = services.keys().filter(|name| name.starts_with("redis-")).count();
    assert_eq!(nodes, 6);
    let volumes = compose["volumes"].as_object().unwrap();
    for name in ["worker-1", "worker-2"] {
        let worker = &services[name];
        is_worker(&texts(&worker["command"]));
        for before in worker["depends_on"].as_object().unwrap().keys() {
            assert!(services.contains_key(before), "{before}");
        }
        for volume in texts(&worker["volumes"]) {
            let of = volume.split(':').next().unwrap();
            assert!(of.starts_with("./") || volumes.contains_key(of), "{volume}");
        }
        let secret = worker["environment"]["CRAWL_CLUSTER_PASSWORD_FILE"].as_str().unwrap();
        assert_eq!(secret, "/run/secrets/password");
    }
    let create = texts(&services["create"]["command"]).join(" ");
    assert!(create.contains("--cluster create") && create.contains("--cluster-replicas 1"));
    for file in ["redis.conf", "../Containerfile", "../../seeds/list.txt"] {
        assert!(folder().join(file).exists(), "{file}");
    }
}

#[test]
fn the_manifest_names_nothing_that_is_not_there() {
    let all = yaml("kubernetes.yaml");
    let kinds: Vec<&str> = all.iter().map(|one| one["kind"].as_str().unwrap()).collect();
    for kind in ["Secret", "StatefulSet", "Service", "PodDisruptionBudget"] {
        assert!(kinds.contains(&kind), "{kinds:?}");
    }
    let of = |kind: &str| all.iter().find(|one| one["kind"] == kind).unwrap();
    let set = of("StatefulSet");
    let pod = &set["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    is_worker(&texts(&container["args"]));
    let mut volumes: Vec<&Value> = pod["volumes"].as_array().unwrap().iter().collect();
    for volume in &volumes {
        let named = [
            ("Secret", &volume["secret"]["secretName"]),
            ("ConfigMap", &volume["configMap"]["name"]),
            ("PersistentVolumeClaim", &volume["persistentVolumeClaim"]["claimName"]),
        ];
        for (kind, name) in named.into_iter().filter(|(_, name)| !name.is_null()) {
            assert_eq!(&of(kind)["metadata"]["name"], name);
        }
    }
    let claims = set["spec"]["volumeClaimTemplates"].as_array().unwrap();
    volumes.extend(claims.iter().map(|claim| &claim["metadata"]));
    for mount in container["volumeMounts"].as_array().unwrap() {
        assert!(volumes.iter().any(|one| one["name"] == mount["name"]), "{mount}");
    }
    let app = &set["spec"]["template"]["metadata"]["labels"]["app"];
    assert_eq!(&of("Service")["spec"]["selector"]["app"], app);
    assert_eq!(&of("PodDisruptionBudget")["spec"]["selector"]["matchLabels"]["app"], app);
    // What is asked before a worker counts as started, and the settings, are known.
    let probe = texts(&container["startupProbe"]["exec"]["command"]);
    let out = crawl(&[&probe[1..], &["--help"]].concat(), Path::new("/"));
    assert!(out.status.success(), "{out:?}");
    let settings = tempfile::tempdir().unwrap();
    let toml = of("ConfigMap")["data"]["crawl.toml"].as_str().unwrap();
    fs::write(settings.path().join("crawl.toml"), toml).unwrap();
    let out = crawl(&["config", "--config", "crawl.toml"], settings.path());
    assert!(out.status.success(), "{out:?}");
}

#[test]
fn the_units_of_systemd_have_known_keys_and_run_a_worker() {
    let known: &[(&str, &[&str])] = &[
        ("Unit", &["Description", "Documentation", "Wants", "After"]),
        (
            "Service",
            &[
                "Type",
                "EnvironmentFile",
                "LoadCredential",
                "Environment",
                "ExecStart",
                "User",
                "Group",
                "StateDirectory",
                "WorkingDirectory",
                "UMask",
                "KillSignal",
                "KillMode",
                "TimeoutStartSec",
                "TimeoutStopSec",
                "SuccessExitStatus",
                "Restart",
                "RestartSec",
                "NoNewPrivileges",
                "ProtectSystem",
                "ProtectHome",
                "PrivateTmp",
                "PrivateDevices",
                "LimitNOFILE",
                "OOMScoreAdjust",
            ],
        ),
        ("Install", &["WantedBy"]),
    ];
    for name in ["crawl-worker@.service", "redis-server-crawl.conf"] {
        let text = fs::read_to_string(folder().join(name)).unwrap();
        let mut keys: &[&str] = &[];
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            if let Some(section) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
                keys = known.iter().find(|(known, _)| *known == section).expect(section).1;
                continue;
            }
            let (key, value) = line.split_once('=').unwrap_or_else(|| panic!("{name}: {line}"));
            assert!(keys.contains(&key), "{name}: {key} is not known there");
            if key == "ExecStart" {
                let words = value.strip_prefix("/usr/local/bin/crawl ").unwrap();
                is_worker(&words.split(' ').collect::<Vec<_>>());
            }
        }
    }
}
