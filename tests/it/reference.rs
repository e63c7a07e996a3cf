//! The reference of the HTTP API in the documents is made from its description. `UPDATE_DOCS=1
//! cargo test --test it reference::` writes it anew.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::Value;

fn table() -> String {
    let text = fs::read_to_string(file("src/service/openapi.json")).unwrap();
    let description: Value = serde_json::from_str(&text).unwrap();
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

#[test]
fn the_reference_of_the_api_is_made_from_its_description() {
    let (path, page) = (file("docs/src/reference/api.md"), table());
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, &page).unwrap();
    }
    let stored = fs::read_to_string(&path).unwrap();
    assert!(stored == page, "{} is old: UPDATE_DOCS=1 writes it anew", path.display());
}
