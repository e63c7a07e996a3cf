//! The habits of this repository, enforced: layers, sizes, headers, no forgotten test file.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Rank of each module of the library. A module uses only modules of lower ranks.
const RANKS: [(&str, u32); 33] = [
    ("clock", 0),
    ("localweb", 0),
    ("outputs", 0),
    ("simhash", 0),
    ("sketch", 0),
    ("store", 0),
    ("system", 0),
    ("text", 0),
    ("units", 0),
    ("urls", 0),
    ("boilerplate", 1),
    ("extract", 1),
    ("features", 1),
    ("index", 1),
    ("robots", 1),
    ("rules", 1),
    ("verdicts", 1),
    ("discover", 2),
    ("documents", 2),
    ("forest", 2),
    ("clusters", 3),
    ("fetch", 3),
    ("frontier", 3),
    ("check", 4),
    ("dedup", 4),
    ("explain", 4),
    ("export", 4),
    ("search", 4),
    ("corpus", 5),
    ("crawl", 5),
    ("intake", 5),
    ("jobs", 6),
    ("api", 7),
];

/// `config` joins the settings of all modules; only the binary is above it.
const TOP: (&str, u32) = ("config", 8);

const LINE_MAX: usize = 100;
const FILE_MAX: usize = 500;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn rust_files(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            files.push((path, text));
        }
    }
    files
}

fn ranks() -> BTreeMap<&'static str, u32> {
    RANKS.into_iter().chain([TOP]).collect()
}

#[test]
fn modules_use_only_lower_layers() {
    let ranks = ranks();
    let source = root().join("src");
    let mut faults = Vec::new();
    for (path, text) in rust_files(&source) {
        let inside = path.strip_prefix(&source).unwrap();
        let module = inside.components().next().unwrap().as_os_str().to_string_lossy().into_owned();
        if matches!(module.as_str(), "main.rs" | "cli" | "lib.rs") {
            continue;
        }
        let rank = ranks.get(module.as_str()).unwrap_or_else(|| panic!("{module} has no rank"));
        for used in ranks.keys().filter(|used| **used != module) {
            let named =
                [format!("crate::{used}::"), format!("crate::{used};"), format!("crate::{used} ")];
            let grouped = text.contains("use crate::{")
                && text.split("use crate::{").skip(1).any(|group| {
                    let group = group.split('}').next().unwrap();
                    group.split([',', ' ', '\n']).any(|word| word == *used)
                });
            if (named.iter().any(|name| text.contains(name)) || grouped) && ranks[used] >= *rank {
                faults.push(format!("{} uses {used}, which is not below it", inside.display()));
            }
        }
    }
    assert_eq!(faults, Vec::<String>::new());
}

#[test]
fn every_module_stands_in_the_list_of_ranks() {
    let lib = fs::read_to_string(root().join("src/lib.rs")).unwrap();
    let mut declared: Vec<&str> =
        lib.lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';')).collect();
    declared.sort_unstable();
    assert_eq!(declared, ranks().into_keys().collect::<Vec<_>>());
}

#[test]
fn files_have_a_header_and_a_bearable_size() {
    let mut faults = Vec::new();
    for folder in ["src", "tests"] {
        for (path, text) in rust_files(&root().join(folder)) {
            let name = path.display();
            if !text.starts_with("//! ") {
                faults.push(format!("{name} does not say what it is for"));
            }
            let code = text.lines().filter(|line| !line.trim().is_empty()).count();
            if code > FILE_MAX {
                faults.push(format!("{name} has {code} lines"));
            }
            // Tests may have a long line of data, which reads better whole.
            let long = text.lines().position(|line| line.chars().count() > LINE_MAX);
            if let Some(long) = long.filter(|_| folder == "src") {
                faults.push(format!("{name}:{} is a long line", long + 1));
            }
        }
    }
    assert_eq!(faults, Vec::<String>::new());
}

#[test]
fn only_the_binary_prints_or_reads_the_environment() {
    for (path, text) in rust_files(&root().join("src")) {
        let binary = path.components().any(|part| part.as_os_str() == "cli");
        if binary || path.ends_with("main.rs") {
            continue;
        }
        for call in ["println!", "print!(", "env::var", "process::exit"] {
            assert!(!text.contains(call), "{} has {call}", path.display());
        }
    }
}

/// Rows of the table of behaviours: first cell, and all names of tests.
fn behaviours() -> Vec<(String, Vec<String>)> {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let section = text.split("\n## Behaviours and their tests\n").nth(1).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| "));
    let names = |row: &str| -> Vec<String> {
        let words = row.split('`').skip(1).step_by(2).map(str::to_owned);
        words.filter(|word| word.contains("::") && !word.contains(' ')).collect()
    };
    rows.map(|row| (row.split(" |").next().unwrap().to_owned(), names(row))).collect()
}

/// Tells whether there is a test of this name in a file of tests, or in a module of the library.
fn is_test(name: &str) -> bool {
    let (module, function) = name.rsplit_once("::").unwrap();
    let path = module.replace("::", "/");
    let files = ["tests/it/@.rs", "src/@.rs", "src/@/mod.rs", "src/@/tests.rs"];
    let texts = files.iter().map(|file| fs::read_to_string(root().join(file.replace('@', &path))));
    texts.filter_map(Result::ok).any(|text| {
        let at = text.find(&format!("fn {function}("));
        at.is_some_and(|at| {
            let before = text[..at].lines().rev().map(str::trim).filter(|line| !line.is_empty());
            let mut marks = before.take_while(|line| line.starts_with("#["));
            marks.any(|line| line == "#[test]")
        })
    })
}

#[test]
fn every_behaviour_names_tests_that_are_there() {
    let rows = behaviours();
    let lost: Vec<&String> =
        rows.iter().flat_map(|(_, names)| names).filter(|name| !is_test(name)).collect();
    assert_eq!(lost, Vec::<&String>::new(), "no such tests");
    assert!(!is_test("tidy::behaviours") && !is_test("tidy::no_such_test"));
    // The speed has no test, with the reason beside it.
    let bare = rows.iter().filter(|(line, names)| names.is_empty() && is_line(line));
    assert_eq!(bare.map(|(line, _)| line.as_str()).collect::<Vec<_>>(), ["24"]);
    let listed = |line: String| rows.iter().any(|(found, _)| *found == line);
    let lines = |letter: &'static str, last| (1..=last).map(move |n| format!("{letter}{n}"));
    let all = lines("R", 16).chain(lines("P", 7)).chain(lines("F", 9)).chain(lines("", 25));
    assert_eq!(all.filter(|line| !listed(line.clone())).collect::<Vec<_>>(), Vec::<String>::new());
}

/// The rest are heads of tables.
fn is_line(cell: &str) -> bool {
    cell.ends_with(|c: char| c.is_ascii_digit())
}

#[test]
fn no_test_file_is_forgotten() {
    let folder = root().join("tests/it");
    let main = fs::read_to_string(folder.join("main.rs")).unwrap();
    for (path, text) in rust_files(&folder) {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        if name != "main" {
            assert!(main.contains(&format!("mod {name};")), "{name} is not in main.rs");
        }
        let skipped = ["#[ig", "nore"].concat();
        assert!(!text.contains(&skipped), "{name} skips a test");
    }
}
