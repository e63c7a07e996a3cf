//! What the documents say of routes, formats and keys is made from their descriptions. `UPDATE_DOCS=1 cargo test
//! --test it reference::` writes it anew.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::Value;

use uniqcrawl::corpus::export::FORMATS;
use uniqcrawl::neardup::Key;
use uniqcrawl::service::{openapi, routes};

fn table() -> String {
    let description: Value = serde_json::from_str(openapi()).unwrap();
    let mut page =
        "# HTTP API\n\nMade from `/openapi.json` of the service, which has the shapes of all \
        bodies. Errors are `application/problem+json` with a stable `code`.\n"
            .to_owned();
    for (path, methods) in description["paths"].as_object().unwrap() {
        for (method, of) in methods.as_object().unwrap() {
            if of["operationId"].is_null() {
                continue;
            }
            let summary = of["summary"].as_str().unwrap();
            write!(page, "\n## `{} {path}`\n\n{summary}.\n", method.to_uppercase()).unwrap();
            let parameters = of["parameters"].as_array().into_iter().flatten();
            let parameters: Vec<&Value> =
                parameters.filter(|one| one["name"].is_string()).collect();
            if !parameters.is_empty() {
                page += "\n| parameter | in | what |\n|---|---|---|\n";
            }
            for one in parameters {
                let [name, place] = ["name", "in"].map(|key| one[key].as_str().unwrap());
                let what = one["description"].as_str().unwrap_or_default().replace('|', "\\|");
                let needed = if one["required"] == true { " (required)" } else { "" };
                writeln!(page, "| `{name}`{needed} | {place} | {what} |").unwrap();
            }
            let answers = of["responses"].as_object().unwrap();
            let answers: Vec<&str> = answers.keys().map(String::as_str).collect();
            writeln!(page, "\nAnswers: {}.", answers.join(", ")).unwrap();
        }
    }
    page
}

fn file(path: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// The list of all routes, in their order.
fn list() -> String {
    let mut list = "| | |\n|---|---|\n".to_owned();
    for route in routes() {
        for (method, operation) in route.methods {
            let operation: Value = serde_json::from_str(operation).unwrap();
            let (method, summary) = (method.to_uppercase(), operation["summary"].as_str().unwrap());
            writeln!(list, "| `{method} {}` | {summary} |", route.path).unwrap();
        }
    }
    list
}

/// Compares a document with what it is to be, or writes it.
fn check(path: &str, whole: impl Fn(&str) -> String) {
    let path = file(path);
    let stored = fs::read_to_string(&path).unwrap();
    let made = whole(&stored);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, made).unwrap();
    } else {
        assert!(stored == made, "{} is old: UPDATE_DOCS=1 writes it anew", path.display());
    }
}

#[test]
fn the_reference_of_the_api_is_made_from_its_description() {
    check("docs/src/reference/api.md", |_| table());
}

/// Compares what stands in a document between the marks of a list.
fn check_list(path: &str, name: &str, list: &str) {
    let marks = [format!("<!-- {name} -->\n"), format!("<!-- end of {name} -->\n")];
    check(path, |stored| {
        let (before, rest) = stored.split_once(&marks[0]).unwrap();
        let (_, after) = rest.split_once(&marks[1]).unwrap();
        [before, &marks[0], list, &marks[1], after].concat()
    });
}

#[test]
fn the_list_of_routes_in_the_guide_is_made_from_them() {
    check_list("docs/src/guide/service.md", "routes", &list());
}

#[test]
fn the_list_of_keys_is_made_from_their_kinds() {
    let mut list = "| code | in output | what people read | |\n|---|---|---|---|\n".to_owned();
    for (code, key) in Key::ALL.iter().enumerate() {
        let [english, chinese] = key.in_words();
        writeln!(list, "| {code} | `{}` | {english} | {chinese} |", key.as_str()).unwrap();
    }
    check_list("docs/src/reference/store-format.md", "keys", &list);
}

#[test]
fn the_list_of_formats_in_the_guide_is_made_from_them() {
    let mut list = "| `--format` | file | |\n|---|---|---|\n".to_owned();
    for format in FORMATS {
        writeln!(list, "| `{}` | `{}` | {} |", format.name, format.file, format.about).unwrap();
    }
    check_list("docs/src/guide/crawl.md", "formats", &list);
}

/// A description that no route names is one that nobody reads.
#[test]
fn every_description_is_of_a_route_and_named_by_its_operation() {
    let described = routes().flat_map(|route| route.methods).map(|(_, operation)| {
        let operation: Value = serde_json::from_str(operation).unwrap();
        format!("{}.json", operation["operationId"].as_str().unwrap())
    });
    let described: BTreeSet<String> = described.collect();
    let folder = fs::read_dir(file("src/service/openapi")).unwrap();
    let files = folder.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(described, files.collect());
}
