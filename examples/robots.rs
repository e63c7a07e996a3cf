//! Tells whether a robots.txt allows a URL: `cargo run --example robots -- robots.txt mybot /private/x`

#![allow(clippy::print_stdout, reason = "it prints what it found")]

use std::error::Error;

use uniqcrawl::robots::{Options, RobotsRules};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [file, agent, url] = arguments.as_slice() else {
        return Err("name a robots.txt, the token of a crawler, and a URL or path".into());
    };
    let rules = RobotsRules::parse(&std::fs::read(file)?, &Options::default());
    let answer = rules.verdict(agent, url);
    let rule = answer.rule.map_or("no rule".to_owned(), |rule| rule.text);
    println!("{} ({rule})", if answer.allowed { "allowed" } else { "disallowed" });
    Ok(())
}
