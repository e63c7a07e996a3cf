//! Prints the title and the main text of a page: `cargo run --example extract -- page.html`

#![allow(clippy::print_stdout, reason = "it prints what it found")]

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("name a file of HTML")?;
    let page = uniqcrawl::extract(&std::fs::read(path)?, None);
    println!("{}\n\n{}", page.title, page.text);
    Ok(())
}
