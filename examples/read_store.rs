//! Prints what a crawl has stored: `cargo run --example read_store -- store`

#![allow(clippy::print_stdout, reason = "it prints what it found")]

use uniqcrawl::{LibraryError, StoreReader};

fn main() -> Result<(), LibraryError> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| "store".to_owned());
    let store = StoreReader::open(folder)?;
    for document in store.documents()? {
        let document = document?;
        println!("{} {}", document.doc_id, document.title);
        for url in store.copies(&document.doc_id)? {
            println!("  {url}");
        }
    }
    Ok(())
}
