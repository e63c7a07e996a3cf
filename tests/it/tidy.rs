//! The habits of this repository, enforced: layers, sizes, headers, no forgotten test file.

use std::fs;
use std::path::{Path, PathBuf};

/// Rank of each room of the library, and of the modules in it that have an order of their own. A
/// module uses only modules of lower ranks, and what is below it in its own folder.
const RANKS: [(&str, u32); 42] = [
    ("base", 0),
    ("localweb", 1),
    ("store", 1),
    ("cluster", 1),
    ("urls", 1),
    ("text::simhash", 1),
    ("text::sketch", 1),
    ("text", 2),
    ("text::features", 3),
    ("page", 3),
    ("web", 3),
    ("web::fetch", 4),
    ("warc", 5),
    ("neardup::index", 4),
    ("neardup::forest", 5),
    ("neardup", 6),
    ("corpus::files", 7),
    ("frontier::tables", 2),
    ("frontier::rules", 3),
    ("frontier::duplicate_feed", 3),
    ("frontier", 8),
    ("corpus::tables", 2),
    ("corpus::boilerplate", 3),
    ("corpus::documents", 7),
    ("corpus::index", 8),
    ("corpus::clusters", 9),
    ("corpus::search", 10),
    ("corpus::check", 11),
    ("corpus::dedup", 11),
    ("corpus::explain", 11),
    ("corpus::export", 11),
    ("corpus::files", 11),
    ("corpus::shared", 12),
    ("corpus", 12),
    ("corpus::import", 13),
    ("corpus::transfer", 13),
    ("crawl", 13),
    ("crawl::jobs", 14),
    ("service::ingest", 13),
    ("service", 15),
    // It joins the settings of all rooms before it.
    ("config", 16),
    // The library as Python has it; only a build of the wheel has this.
    ("python", 18),
];

/// What programs use; only the binary is beside it.
const TOP: (&str, u32) = ("library", 17);

/// The rooms, each of which uses only those before it.
const ROOMS: [&str; 17] = [
    "base", "localweb", "urls", "store", "cluster", "text", "page", "web", "warc", "neardup",
    "frontier", "corpus", "crawl", "service", "config", "library", "python",
];

/// Where a room still looks into one above it.
const UPWARD: [(&str, &str); 2] =
    [("frontier/again.rs", "corpus"), ("frontier/admission.rs", "corpus")];

/// Rooms with functions that still take tuples. A room that is clean is taken off, until only the
/// store is left, whose keys and fields of rows may be tuples; none comes back.
const TAKES_TUPLES: [&str; 1] = ["store"];

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

/// The paths of this crate that a file names in its code, those of groups each by itself.
fn paths(text: &str) -> Vec<String> {
    let code: String = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .flat_map(|line| [line, "\n"])
        .collect();
    let mut paths = Vec::new();
    for rest in code.split("crate::").skip(1) {
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_' && c != ':');
        let path = &rest[..end.unwrap_or(rest.len())];
        match rest[path.len()..].strip_prefix('{') {
            Some(group) => {
                let group = group.split('}').next().unwrap();
                paths.extend(group.split(',').map(|name| format!("{path}{}", name.trim())));
            }
            None => paths.push(path.to_owned()),
        }
    }
    paths
}

/// The module of the list that a path is of: the longest one.
fn module_of(path: &str) -> Option<(&'static str, u32)> {
    let is_in = |module: &str| {
        path.strip_prefix(module).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
    };
    let all = RANKS.into_iter().chain([TOP]);
    all.filter(|(module, _)| is_in(module)).max_by_key(|(module, _)| module.len())
}

/// Path of each file of the library in its crate, with its text.
fn modules() -> Vec<(String, String)> {
    let source = root().join("src");
    let files = rust_files(&source).into_iter().filter_map(|(path, text)| {
        let inside = path.strip_prefix(&source).unwrap().display().to_string();
        let outside = ["main.rs", "lib.rs", "cli/"].iter().any(|start| inside.starts_with(start));
        (!outside).then_some((inside, text))
    });
    files.collect()
}

#[test]
fn modules_use_only_lower_layers() {
    let mut faults = Vec::new();
    for (file, text) in modules() {
        let path = file.trim_end_matches(".rs").trim_end_matches("/mod").replace('/', "::");
        let (module, rank) = module_of(&path).unwrap_or_else(|| panic!("{path} has no rank"));
        for used in paths(&text) {
            let (below, its_rank) = module_of(&used).unwrap_or_else(|| panic!("{used} in {file}"));
            if below != module && its_rank >= rank {
                faults.push(format!("{file} uses {used}, which is not below {module}"));
            }
        }
    }
    assert_eq!(faults, Vec::<String>::new());
}

#[test]
fn rooms_use_only_rooms_below_them() {
    let place = |room: &str| ROOMS.iter().position(|known| *known == room);
    let mut upward = Vec::new();
    for (file, text) in modules() {
        let room = file.split(['/', '.']).next().unwrap();
        for used in paths(&text) {
            let other = used.split(':').next().unwrap();
            if other != room && place(other) >= place(room) {
                upward.push((file.clone(), other.to_owned()));
            }
        }
    }
    assert_eq!(upward, UPWARD.map(|(file, room)| (file.to_owned(), room.to_owned())));
}

#[test]
fn every_room_is_listed() {
    let lib = fs::read_to_string(root().join("src/lib.rs")).unwrap();
    // Private, but for the tests; the command line is no room.
    let private = |line: &'_ str| Some(line.strip_prefix("mod ")?.strip_suffix(';')?.to_owned());
    assert_eq!(lib.lines().filter_map(private).collect::<Vec<_>>(), ROOMS);
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

/// The border: whatever else is stored, and wherever, only one room knows the database.
#[test]
fn only_the_store_names_the_database() {
    for (path, text) in rust_files(&root().join("src")) {
        let inside = path.strip_prefix(root().join("src")).unwrap();
        if !inside.starts_with("store") {
            assert!(!text.contains("redb::"), "{} names the database", inside.display());
        }
    }
}

#[test]
fn only_the_binary_prints_or_reads_the_environment() {
    for (path, text) in rust_files(&root().join("src")) {
        let binary = path.components().any(|part| part.as_os_str() == "cli");
        if binary || path.ends_with("main.rs") {
            continue;
        }
        for call in ["println!", "print!(", "env::var", "process::exit"] {
            let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
            let found = lines.into_iter().any(|line| line.contains(call));
            assert!(!found, "{} has {call}", path.display());
        }
    }
}

/// The pieces between the commas of the bracket that a text begins with.
fn pieces(text: &str) -> Vec<&str> {
    let (mut pieces, mut depth, mut start, mut before) = (Vec::new(), 0, 1, ' ');
    for (at, c) in text.char_indices() {
        match c {
            '(' | '[' | '{' | '<' => depth += 1,
            // An arrow closes nothing.
            '>' if before == '-' => {}
            ')' | ']' | '}' | '>' => depth -= 1,
            _ => {}
        }
        if depth == 0 || depth == 1 && c == ',' {
            pieces.push(&text[start..at]);
            start = at + 1;
        }
        if depth == 0 {
            break;
        }
        before = c;
    }
    pieces
}

/// Names of functions with the types of their parameters, as they are written.
fn parameters(text: &str) -> Vec<(&str, Vec<&str>)> {
    let functions = text.split("fn ").skip(1).filter_map(|rest| {
        let (name, rest) = rest.split_at(rest.find(|c: char| !c.is_alphanumeric() && c != '_')?);
        let generics = if rest.starts_with('<') { pieces(rest) } else { Vec::new() };
        // Each piece has a comma behind it, or the bracket that closes the last one.
        let before: usize = generics.iter().map(|piece| piece.len() + 1).sum();
        let rest = &rest[if generics.is_empty() { 0 } else { before + 1 }..];
        let types = pieces(rest).into_iter().filter_map(|piece| Some(piece.split_once(": ")?.1));
        rest.starts_with('(').then(|| (name, types.collect()))
    });
    functions.collect()
}

/// Tells whether a type is a tuple, or a reference to one; `aliases` are names of tuples.
fn is_tuple(kind: &str, aliases: &[&str]) -> bool {
    let kind = kind.trim_start_matches('&');
    let kind =
        kind.strip_prefix('\'').and_then(|rest| rest.split_once(' ')).map_or(kind, |(_, k)| k);
    let kind = kind.strip_prefix("mut ").unwrap_or(kind);
    let name = kind.split('<').next().unwrap();
    kind.starts_with('(') && pieces(kind).len() > 1 || aliases.contains(&name)
}

/// Functions of a file that take a tuple.
fn takers(text: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    let code = lines.collect::<Vec<_>>().join("\n");
    let aliases = code.split("type ").skip(1).filter_map(|rest| {
        let (name, meaning) = rest.split_once(';')?.0.split_once(" = ")?;
        is_tuple(meaning, &[]).then(|| name.split('<').next().unwrap())
    });
    let aliases: Vec<&str> = aliases.collect();
    let functions = parameters(&code).into_iter();
    let takers = functions.filter(|(_, types)| types.iter().any(|kind| is_tuple(kind, &aliases)));
    takers.map(|(name, _)| name.to_owned()).collect()
}

/// A parameter is one thing with a name. Closures may take tuples, as iterators give them.
#[test]
fn no_function_takes_a_tuple() {
    let code = "
        type Span<'a> = (usize, &'a str);
        fn pattern((a, b): (u8, &str), c: u8) {}
        fn lines<'a, F: Fn((u8, u8)) -> u8>(
            &self,
            // (a comment): (u8, u8)
            pair: &'a mut (u8, Vec<(u8, u8)>),
        ) {}
        fn alias(span: &Span<'_>) {}
        fn none(error: &(dyn Error + 'static), list: &[(u8, u8)], each: impl Fn((u8, u8)), s: S) {}
    ";
    assert_eq!(takers(code), ["pattern", "lines", "alias"]);
    let mut found = Vec::new();
    for (path, text) in rust_files(&root().join("src")) {
        let inside = path.strip_prefix(root().join("src")).unwrap().display().to_string();
        let room = inside.split(['/', '.']).next().unwrap();
        if !TAKES_TUPLES.contains(&room) {
            found.extend(takers(&text).into_iter().map(|name| format!("{inside}: {name}")));
        }
    }
    assert_eq!(found, Vec::<String>::new());
}

/// Rows of the table of behaviours: first cell, and all names of tests.
fn behaviours() -> Vec<(String, Vec<String>)> {
    let text = fs::read_to_string(root().join("docs/src/behaviours.md")).unwrap();
    let rows = text.lines().filter_map(|line| line.strip_prefix("| "));
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

/// Links of the documents lead to files that are there.
#[test]
fn links_of_the_documents_lead_somewhere() {
    let mut lost = Vec::new();
    let mut pages = 0;
    for page in documents(&root()) {
        pages += 1;
        let text = fs::read_to_string(&page).unwrap();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next()) {
            let is_file = link.contains(['/', '.']) && !link.contains("://");
            if is_file && !page.parent().unwrap().join(link).exists() {
                lost.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(pages > 10, "{pages} pages");
    assert_eq!(lost, Vec::<String>::new());
}

/// All pages of the documents.
fn documents(root: &Path) -> Vec<PathBuf> {
    let mut pages = Vec::new();
    for folder in [root.to_owned(), root.join("docs/src"), root.join("benches")] {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|ending| ending == "md") {
                pages.push(path);
            }
        }
    }
    for folder in ["guide", "reference"] {
        let entries = fs::read_dir(root.join("docs/src").join(folder)).unwrap();
        pages.extend(entries.map(|entry| entry.unwrap().path()));
    }
    pages
}

/// A stranger reads the first page in ten minutes.
#[test]
fn the_first_pages_stay_short() {
    for (page, most) in
        [("README.md", 10_240), ("README.zh.md", 10_240), ("ARCHITECTURE.md", 15_360)]
    {
        let bytes = fs::metadata(root().join(page)).unwrap().len();
        assert!(bytes <= most, "{page} has {bytes} bytes, of {most}");
    }
}

/// Names of the packages that the library needs with whatever features, but those of tests.
fn needed() -> Vec<String> {
    let manifest: toml::Table =
        fs::read_to_string(root().join("Cargo.toml")).unwrap().parse().unwrap();
    let systems = manifest["target"].as_table().unwrap().values();
    let tables = systems.map(|system| &system["dependencies"]).chain([&manifest["dependencies"]]);
    let all = tables.flat_map(|table| table.as_table().unwrap());
    let optional = |one: &toml::Value| one.get("optional").is_some_and(|is| is.as_bool().unwrap());
    all.filter(|(_, one)| !optional(one)).map(|(name, _)| name.clone()).collect()
}

/// The packages under `benches` are built with what their lock files say of this one: a stale lock
/// file is mended by `cargo metadata --manifest-path benches/NAME/Cargo.toml`.
#[test]
fn lock_files_of_the_benches_know_what_the_library_needs() {
    let mut read = 0;
    for folder in fs::read_dir(root().join("benches")).unwrap() {
        let path = folder.unwrap().path().join("Cargo.lock");
        let Ok(text) = fs::read_to_string(&path) else { continue };
        let lock: toml::Table = text.parse().unwrap();
        let packages = lock["package"].as_array().unwrap().iter();
        let mut own = packages.filter(|package| package["name"].as_str() == Some("uniqcrawl"));
        let known = own.next().unwrap()["dependencies"].as_array().unwrap().iter();
        // With its version behind it, where there are several.
        let known: Vec<&str> =
            known.filter_map(|one| one.as_str().unwrap().split(' ').next()).collect();
        let lost = needed().into_iter().filter(|name| !known.contains(&name.as_str()));
        assert_eq!(lost.collect::<Vec<_>>(), Vec::<String>::new(), "{}", path.display());
        read += 1;
    }
    assert_eq!(read, 4);
}
