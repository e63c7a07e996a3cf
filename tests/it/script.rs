//! The script that runs all tests, on machines that lack something.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Command, Output};

/// A machine with these programs, each of which notes how it was called, and some of the usual
/// ones. Answers what `tests/run dashboard` says, and what was called.
fn on_a_machine_with(programs: &[&str]) -> (Output, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    let bin = folder.path();
    for usual in ["bash", "dirname", "grep", "sed"] {
        let all = std::env::var_os("PATH").unwrap();
        let found =
            std::env::split_paths(&all).map(|path| path.join(usual)).find(|path| path.exists());
        symlink(found.unwrap(), bin.join(usual)).unwrap();
    }
    for program in programs {
        let (name, prints) = program.split_once('=').unwrap_or((program, ""));
        let noted = bin.join("noted");
        let text = match name {
            "id" => format!("#!/bin/sh\necho {prints}\n"),
            "sudo" => "#!/bin/sh\nexec \"$@\"\n".to_owned(),
            _ => format!("#!/bin/sh\necho {name} $* >> {}\necho '{prints}'\n", noted.display()),
        };
        fs::write(bin.join(name), text).unwrap();
        fs::set_permissions(bin.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/run");
    let out = Command::new("bash")
        .args([script.to_str().unwrap(), "dashboard"])
        .env("PATH", bin)
        .env_remove("CHROMIUM")
        .env_remove("REDIS_SERVER")
        .output()
        .unwrap();
    let noted = fs::read_to_string(bin.join("noted")).unwrap_or_default();
    let looks = ["fc-list", "python3"];
    let is_look = |line: &&str| looks.iter().any(|look| line.starts_with(look));
    let called = noted.lines().filter(|line| !is_look(line)).map(str::to_owned);
    (out, called.collect())
}

#[test]
fn all_tests_are_run_by_one_command() {
    let all = [
        "id=0",
        "cc",
        "chromium",
        "redis-server",
        "fc-list=a font",
        "jq",
        "python3",
        "apt-get",
        "cargo",
    ];
    let (out, called) = on_a_machine_with(&all);
    assert!(out.status.success(), "{out:?}");
    assert_eq!(called, ["cargo test dashboard"]);
    for file in [".ci/run", "README.md"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
        let text = fs::read_to_string(path).unwrap();
        assert!(text.lines().any(|line| line.trim() == "tests/run"), "{file}");
    }
}

#[test]
fn what_the_tests_need_is_installed_on_debian() {
    let installs = [
        "apt-get update -q",
        "apt-get install -qy --no-install-recommends gcc chromium redis-server \
         fonts-noto-cjk fontconfig jq python3-venv python3-yaml",
        "cargo test dashboard",
    ];
    for root in [&["id=0"][..], &["id=1000", "sudo"]] {
        let (out, called) = on_a_machine_with(&[root, &["apt-get", "cargo"]].concat());
        assert!(out.status.success(), "{out:?}");
        assert_eq!(called, installs);
    }
}

#[test]
fn what_the_tests_need_is_named_where_it_cannot_be_installed() {
    for machine in [&["id=0", "cargo"][..], &["id=1000", "apt-get", "cargo"]] {
        let (out, called) = on_a_machine_with(machine);
        let told = String::from_utf8(out.stderr).unwrap();
        assert_eq!(out.status.code(), Some(1), "{told}");
        for name in ["C compiler", "Chromium", "CHROMIUM", "Redis Cluster", "Chinese", "Python 3"] {
            assert!(told.contains(name), "{told}");
        }
        assert!(called.is_empty(), "{called:?}");
    }
    let (out, _) = on_a_machine_with(&[
        "id=0",
        "cc",
        "google-chrome-stable",
        "valkey-server",
        "fc-list=a font",
        "jq",
        "python3",
    ]);
    let told = String::from_utf8(out.stderr).unwrap();
    assert!(out.status.code() == Some(1) && told.contains("cargo, of Rust 1."), "{told}");
}
