//! Commands that write much, on a disk that is full in the middle: what they say, what they leave,
//! and that the same command comes to its end when there is room again.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use uniqcrawl::localweb::{Page, Site};
use xxhash_rust::xxh3::xxh3_64;

use crate::support::{Web, crawl, page, prose};
use crate::warc::settings;

/// What makes a disk full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Full {
    /// A file system of its own, as large as that.
    Disk,
    /// No file may be larger, which fails in the same places on machines without a right to mount.
    File,
}

/// A command on a small disk, which is the folder `disk`.
struct Small<'a> {
    folder: &'a Path,
    /// Length of the longest file, and room of the disk, in KiB. A store has a length of a power of
    /// two, most of which takes no room.
    kib: [u64; 2],
    command: &'a [&'a str],
    /// Lines of a shell before the room is made small, in which `$0` is the command.
    before: &'a str,
    /// Lines between both runs.
    between: &'a str,
}

/// What came of it.
struct Came {
    first: i32,
    error: String,
    between: String,
    second: i32,
    told: String,
}

impl Small<'_> {
    /// Runs the command on the full disk, and again when there is room; leaves what is on the disk
    /// in the folder `left`. None if this machine has no such disk.
    fn run(&self, full: Full) -> Option<Came> {
        let Self { folder, kib, command, before, between } = self;
        let (room, more) = match full {
            Full::Disk => (format!("size {}k", kib[1]), "size 1g".to_owned()),
            Full::File => {
                (format!("trap '' XFSZ; ulimit -Sf {}", kib[0]), "ulimit -Sf unlimited".to_owned())
            }
        };
        let script = format!(
            "size() {{ mount -t tmpfs -o remount,size=$1 none disk; }}\n\
            mkdir -p disk; rm -rf left\n\
            {mount}\n{before}\n{room}\n\
            \"$0\" \"$@\" > first.out 2> first.err; echo $? > first.code\n\
            {{\n:\n{between}\n}} > between.out 2>&1\n{more}\n\
            \"$0\" \"$@\" > second.out 2> second.err; echo $? > second.code\n\
            cp -r disk left; {unmount}",
            mount = if full == Full::Disk { "mount -t tmpfs none disk || exit 99" } else { "" },
            unmount = if full == Full::Disk { "umount disk" } else { "rm -r disk" },
        );
        let is_root = rustix::process::geteuid().is_root();
        let mut shell = match (full, is_root) {
            (Full::File, _) => Command::new("bash"),
            (Full::Disk, true) => {
                let mut unshare = Command::new("unshare");
                unshare.args(["-m", "bash"]);
                unshare
            }
            (Full::Disk, false) => {
                let mut unshare = Command::new("unshare");
                unshare.args(["-Urm", "bash"]);
                unshare
            }
        };
        shell.args(["-c", &script, env!("CARGO_BIN_EXE_crawl")]).args(*command);
        let status = shell.current_dir(folder).status();
        if full == Full::Disk && status.map_or(true, |status| status.code() != Some(0)) {
            eprintln!("no small disk can be mounted here: only files of a limited size were tried");
            return None;
        }
        let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
        let code = |name: &str| read(name).trim().parse().unwrap();
        Some(Came {
            first: code("first.code"),
            error: read("first.err"),
            between: read("between.out"),
            second: code("second.code"),
            told: read("second.err"),
        })
    }

    /// Runs it in both ways. The error names `file` and the way out; `look` sees what was there
    /// between both runs, as the lines of the shell have told it, and what is there in the end.
    #[track_caller]
    fn check(&self, file: &str, look: impl Fn(Full, &str)) {
        for full in [Full::File, Full::Disk] {
            let Some(came) = self.run(full) else { continue };
            let what = format!("{:?}: {full:?}: {}", self.command, came.error);
            assert_eq!(came.first, 1, "{what}");
            assert!(came.error.contains(file), "{what}");
            assert!(came.error.to_lowercase().contains("make room"), "{what}");
            assert!(came.error.contains("run the same command again"), "{what}");
            assert_eq!(came.second, 0, "{what}\n{}", came.told);
            look(full, &came.between);
        }
    }
}

fn write_documents(path: &Path, first: u64, count: u64) {
    let mut lines = String::new();
    for number in first..first + count {
        // Half of it is noise, which cannot be packed.
        let noise = (0..40)
            .map(|at| format!("{:x} ", xxh3_64(&[number, at].map(u64::to_le_bytes).concat())));
        let text = format!("{} {}", prose(number, 60), noise.collect::<String>());
        let url = format!("http://site{}.example/{number}", number % 7);
        let line = json!({"url": url, "id": number.to_string(), "text": text});
        writeln!(lines, "{line}").unwrap();
    }
    fs::write(path, lines).unwrap();
}

#[track_caller]
fn done(folder: &Path, arguments: &[&str]) -> Vec<u8> {
    let done = crawl(arguments, folder);
    assert!(done.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
    done.stdout
}

/// Length of a store, and the room that it takes, in KiB.
fn size(folder: &Path, store: &str) -> [u64; 2] {
    use std::os::unix::fs::MetadataExt as _;
    let meta = fs::metadata(folder.join(store).join("store.redb")).unwrap();
    [meta.len() / 1024, meta.blocks() / 2]
}

/// URLs and texts of a store, sorted; it is checked as well.
#[track_caller]
fn texts(folder: &Path, store: &str) -> Vec<String> {
    done(folder, &["check", "--store", store]);
    let all = done(
        folder,
        &["export", "--store", store, "--out", "-", "--fields", "url,text", "--quiet"],
    );
    let mut lines: Vec<String> =
        String::from_utf8(all).unwrap().lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

/// The names and bytes of all files below a folder.
fn all_files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    for entry in walkdir(folder) {
        let name = entry.strip_prefix(folder).unwrap().display().to_string();
        all.push((name, fs::read(&entry).unwrap()));
    }
    all.sort();
    all
}

fn walkdir(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files.extend(walkdir(&path)) } else { files.push(path) }
    }
    files
}

#[test]
fn an_import_keeps_what_it_committed_and_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    write_documents(&path.join("docs.jsonl"), 0, 7_000);
    done(path, &["import", "--store", "whole", "docs.jsonl", "--quiet"]);
    let [length, taken] = size(path, "whole");
    let small = Small {
        folder: path,
        kib: [length * 3 / 4, taken * 3 / 4],
        command: &["import", "--store", "disk/s", "docs.jsonl", "--quiet"],
        before: "",
        between: "cp -r disk/s part; \"$0\" store info --store part; rm -r part",
    };
    small.check("cannot write disk/s/store.redb", |_, info| {
        assert!(info.contains("unfinished") && info.contains("docs.jsonl"), "{info}");
        assert!(!info.contains("documents      0 "), "something was committed: {info}");
        assert_eq!(texts(path, "left/s"), texts(path, "whole"));
        let info: Value =
            serde_json::from_slice(&done(path, &["store", "info", "--store", "left/s", "--json"]))
                .unwrap();
        assert_eq!(info["unfinished"], json!([]));
    });
}

#[test]
fn a_backup_is_none_before_it_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    write_documents(&path.join("docs.jsonl"), 0, 1_200);
    done(path, &["import", "--store", "s", "docs.jsonl", "--quiet"]);
    done(path, &["store", "backup", "--store", "s", "--to", "whole"]);
    let largest = all_files(&path.join("whole")).iter().map(|(_, bytes)| bytes.len()).max();
    for full in [Full::File, Full::Disk] {
        let small = Small {
            folder: path,
            kib: [largest.unwrap() as u64 / 2048, 600],
            command: &["store", "backup", "--store", "s", "--to", "disk/b"],
            before: "",
            between: "\"$0\" store backups disk/b; find disk/b -name '*.zst' | wc -l",
        };
        let Some(came) = small.run(full) else { continue };
        assert_eq!(came.first, 1, "{}", came.error);
        assert!(came.error.contains("cannot use disk/b/chunks/"), "{}", came.error);
        assert!(came.error.contains("what is written already is used"), "{}", came.error);
        assert!(came.between.contains("there is no backup in disk/b"), "{}", came.between);
        assert_eq!(came.second, 0, "{}", came.told);
        done(path, &["store", "verify", "left/b"]);
        done(path, &["store", "restore", "--from", "left/b", "--store", "back"]);
        assert_eq!(texts(path, "back"), texts(path, "s"));
        fs::remove_dir_all(path.join("back")).unwrap();
    }
}

#[test]
fn a_store_that_is_compacted_or_put_back_is_the_old_one_or_the_new_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    write_documents(&path.join("docs.jsonl"), 0, 1_200);
    done(path, &["import", "--store", "s", "docs.jsonl", "--quiet"]);
    let [length, taken] = size(path, "s");
    let expected = texts(path, "s");
    let small = Small {
        folder: path,
        kib: [length / 2, taken + 300],
        command: &["store", "compact", "--store", "disk/s"],
        before: "cp -r s disk/s",
        between: "cmp s/store.redb disk/s/store.redb && ls -A disk/s",
    };
    for full in [Full::File, Full::Disk] {
        let Some(came) = small.run(full) else { continue };
        assert_eq!(came.first, 1, "{}", came.error);
        assert!(came.error.contains("disk/s/store.re"), "{}", came.error);
        assert!(came.error.contains("the store is as it was"), "{}", came.error);
        assert_eq!(came.between.trim(), "store.redb", "nothing else is left");
        assert_eq!(came.second, 0, "{}", came.told);
        assert_eq!(texts(path, "left/s"), expected);
    }
    done(path, &["store", "backup", "--store", "s", "--to", "b"]);
    let small = Small {
        folder: path,
        kib: [length / 2, taken / 2],
        command: &["store", "restore", "--from", "b", "--store", "disk/s"],
        before: "",
        between: "ls -A disk/s",
    };
    small.check("disk/s/store.replacing", |_, left| {
        assert_eq!(left.trim(), "", "there is no store");
        assert_eq!(texts(path, "left/s"), expected);
    });
}

#[test]
fn a_merge_makes_no_store_or_one_that_says_it_is_unfinished() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    for (name, first, count) in [("a", 0, 1_000), ("b", 700, 4_000)] {
        write_documents(&path.join("docs.jsonl"), first, count);
        done(path, &["import", "--store", name, "docs.jsonl", "--quiet"]);
    }
    done(path, &["store", "merge", "a", "b", "--into", "whole", "--quiet"]);
    let expected = texts(path, "whole");
    let ([small, taken], [large, all]) = (size(path, "a"), size(path, "whole"));
    assert!(small < 8_000 && large > 8_500, "{small} {large}");
    for (kib, is_begun) in
        [([small / 2, taken / 2], false), ([8_400, u64::midpoint(taken, all)], true)]
    {
        let small = Small {
            folder: path,
            kib,
            command: &["store", "merge", "a", "b", "--into", "disk/m", "--quiet"],
            before: "",
            between: "ls -A disk/m; cp -r disk/m part; \"$0\" store info --store part; rm -r part",
        };
        small.check("cannot write disk/m/store.redb", |full, told| {
            let is_there = told.starts_with("store.redb");
            if full == Full::File || !is_begun {
                assert_eq!(is_there, is_begun, "{told}");
            }
            assert_eq!(told.contains("merge: the same command goes on"), is_there, "{told}");
            assert_eq!(texts(path, "left/m"), expected);
        });
    }
}

#[test]
fn an_export_in_any_format_has_no_name_before_it_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    write_documents(&path.join("docs.jsonl"), 0, 600);
    done(path, &["import", "--store", "s", "docs.jsonl", "--quiet"]);
    for (format, kib) in
        [("jsonl", 200), ("csv", 200), ("parquet", 100), ("markdown", 200), ("warc", 100)]
    {
        let whole = path.join("whole");
        done(path, &["export", "--store", "s", "--out", "whole", "--format", format]);
        let small = Small {
            folder: path,
            kib: [kib, kib],
            command: &["export", "--store", "s", "--out", "disk/x", "--format", format],
            before: "",
            between: "ls -A disk/x",
        };
        small.check("cannot write disk/x/documents.", |_, left| {
            assert_eq!(left.trim(), "", "{format}");
            let now = all_files(&path.join("left/x"));
            if format == "warc" {
                // Its head has a name and a date of its own.
                assert_eq!(now.len(), all_files(&whole).len());
            } else {
                assert!(now == all_files(&whole), "{format}");
            }
        });
        fs::remove_dir_all(&whole).unwrap();
    }
    let to_output = "\"$0\" export --store s --out - --quiet > disk/lines 2> told; echo $? >> told";
    let small = Small {
        folder: path,
        kib: [100, 100],
        command: &["export", "--store", "s", "--out", "disk/x"],
        before: "",
        between: &format!("rm -rf disk/*; {to_output}; cat told"),
    };
    small.check("disk/x", |full, told| {
        assert!(told.contains("Make room") && told.ends_with("\n1\n"), "{full:?}: {told}");
    });
}

/// Bodies that nobody wants lie in the WARC files alone.
#[test]
fn a_crawl_with_warc_files_on_a_full_disk_goes_on() {
    let noise = |seed: u64| -> Vec<u8> {
        let mut state = seed * 2 + 1;
        let next = |_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 56) as u8
        };
        (0..30_000).map(next).collect()
    };
    let links: Vec<String> = (0..150).map(|number| format!("/{number}.png")).collect();
    let names: Vec<&str> = links.iter().map(String::as_str).collect();
    let front = Site::new().html("/", page("Front", &prose(1, 90), &names));
    let images = links.iter().zip(1..);
    let web =
        Web::one(images.fold(front, |site, (name, seed)| {
            site.page(name, Page::bytes("image/png", noise(seed)))
        }));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let seed = web.web.url(0);
    settings(path);
    for (name, full) in [("f", Full::File), ("d", Full::Disk)] {
        let command = [
            "--allow-private",
            "--delay",
            "0ms",
            "--quiet",
            "--config",
            "c.toml",
            "--store",
            name,
            "--warc",
            "disk/kept",
            &seed,
        ];
        let small =
            Small { folder: path, kib: [2_000, 2_000], command: &command, before: "", between: "" };
        let Some(came) = small.run(full) else { continue };
        assert_eq!(came.first, 1, "{}", came.error);
        assert!(came.error.contains("cannot write") && came.error.contains(".warc.gz"));
        assert!(came.error.contains("the crawl goes on behind it"), "{}", came.error);
        assert_eq!(came.second, 0, "{}", came.told);
        let files = walkdir(&path.join("left/kept"));
        let index = files.iter().find(|file| file.display().to_string().contains(".cdx")).unwrap();
        let indexed: Vec<String> = files
            .iter()
            .filter(|file| file.extension() == index.extension())
            .flat_map(|file| {
                fs::read_to_string(file).unwrap().lines().map(str::to_owned).collect::<Vec<_>>()
            })
            .filter(|line| line.contains(".png"))
            .collect();
        assert_eq!(indexed.len(), links.len(), "each once");
    }
}
