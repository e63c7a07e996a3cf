//! Licences and sources of all packages that are built in: those of `deny.toml`, and no others.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

fn output(program: &str, arguments: &[&str]) -> String {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(env!("CARGO_MANIFEST_DIR"));
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Tells whether a licence expression can be met with allowed licences alone. `/` stands for `OR`
/// in old packages.
fn is_met(expression: &str, allowed: &[String]) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let spaced = spaced.replace(" WITH ", "+");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut at = 0;
    let met = either(&words, &mut at, allowed);
    assert_eq!(at, words.len(), "{expression}");
    met
}

fn either(words: &[&str], at: &mut usize, allowed: &[String]) -> bool {
    let mut met = both(words, at, allowed);
    while words.get(*at) == Some(&"OR") {
        *at += 1;
        met |= both(words, at, allowed);
    }
    met
}

fn both(words: &[&str], at: &mut usize, allowed: &[String]) -> bool {
    let mut met = one(words, at, allowed);
    while words.get(*at) == Some(&"AND") {
        *at += 1;
        met &= one(words, at, allowed);
    }
    met
}

fn one(words: &[&str], at: &mut usize, allowed: &[String]) -> bool {
    let word = words[*at];
    *at += 1;
    if word != "(" {
        return allowed.iter().any(|licence| licence.replace(" WITH ", "+") == word);
    }
    let met = either(words, at, allowed);
    assert_eq!(words.get(*at), Some(&")"));
    *at += 1;
    met
}

#[test]
fn all_dependencies_have_allowed_licences_and_come_from_the_registry() {
    let rustc = output("rustc", &["-vV"]);
    let host = rustc.lines().find_map(|line| line.strip_prefix("host: ")).unwrap();
    let arguments = ["metadata", "--format-version", "1", "--locked", "--offline"];
    let arguments = [&arguments[..], &["--filter-platform", host]].concat();
    let metadata: Value = serde_json::from_str(&output(env!("CARGO"), &arguments)).unwrap();
    let deny = Path::new(env!("CARGO_MANIFEST_DIR")).join("deny.toml");
    let deny: toml::Table = std::fs::read_to_string(deny).unwrap().parse().unwrap();
    let allowed: Vec<String> = deny["licenses"]["allow"].clone().try_into().unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    assert!(packages.len() > 100, "{}", packages.len());
    for package in packages {
        let name = &package["name"];
        let licence = package["license"].as_str().unwrap_or_else(|| panic!("{name}: none"));
        assert!(is_met(licence, &allowed), "{name}: {licence}");
        let source = package["source"].as_str();
        let registry = "registry+https://github.com/rust-lang/crates.io-index";
        assert!(name == "uniqcrawl" || source == Some(registry), "{name}: {source:?}");
    }
}

#[test]
fn expressions_of_licences_are_read() {
    let allowed = ["MIT", "ISC", "Apache-2.0 WITH LLVM-exception"].map(str::to_owned);
    for met in ["MIT", "GPL-3.0 OR MIT", "GPL-3.0/MIT", "(GPL-3.0 OR MIT) AND ISC"] {
        assert!(is_met(met, &allowed), "{met}");
    }
    assert!(is_met("Apache-2.0 WITH LLVM-exception", &allowed));
    for not in ["GPL-3.0", "MIT AND GPL-3.0", "Apache-2.0", "ISC AND (GPL-3.0 OR BSD-3-Clause)"] {
        assert!(!is_met(not, &allowed), "{not}");
    }
}
