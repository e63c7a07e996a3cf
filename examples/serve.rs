//! Answers with docIds on loopback until Enter is pressed: `cargo run --example serve -- store`

#![allow(clippy::print_stdout, reason = "it prints what it found")]

use std::error::Error;
use std::io::BufRead as _;

use uniqcrawl::Server;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| "store".to_owned());
    let server = Server::start(folder, "127.0.0.1:0".parse()?)?;
    println!("listening on http://{}", server.address());
    std::io::stdin().lock().read_line(&mut String::new())?;
    server.stop();
    Ok(())
}
