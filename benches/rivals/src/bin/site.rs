//! Serves a site of N pages of 13 KB with 20 links each on loopback, until it is killed.

use std::net::SocketAddr;

use uniqcrawl::localweb::{LocalWeb, Page, Site};

const WORDS: [&str; 48] = [
    "harbour", "orchard", "lantern", "compass", "meadow", "turbine", "ledger", "glacier", "anvil",
    "pottery", "cathedral", "railway", "sparrow", "lagoon", "almanac", "furnace", "quarry",
    "vineyard", "beacon", "mosaic", "caravan", "theatre", "citadel", "plateau", "estuary",
    "bakery", "archive", "parliament", "telescope", "harvest", "museum", "ferry", "workshop",
    "library", "market", "bridge", "garden", "tower", "village", "island", "opened", "measured",
    "repaired", "painted", "quiet", "granite", "narrow", "distant",
];

fn page(number: u64, pages: u64) -> String {
    let mut state = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0xD1B5_4A32_D192_ED03;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut html = format!("<!DOCTYPE html><html><head><title>Page {number}</title></head><body><main><h1>Page {number}</h1>\n");
    while html.len() < 12_000 {
        html.push_str("<p>");
        for _ in 0..40 {
            let bits = next();
            html.push_str(WORDS[(bits % 48) as usize]);
            // A quarter of the words are of this page alone, so that no page is like another.
            if bits & 0x300_0000 == 0 {
                html.push_str(&(bits >> 40).to_string());
            }
            html.push(' ');
        }
        html.push_str("</p>\n");
    }
    html.push_str("</main><ul>");
    for link in 0..20 {
        // Two children in a tree, so that every page is reached; the others anywhere.
        let to = match link {
            0 | 1 => number * 2 + link + 1,
            _ => next() % pages,
        };
        if to < pages {
            html.push_str(&format!("<li><a href=\"/p/{to}\">page {to}</a></li>"));
        }
    }
    html.push_str("</ul></body></html>");
    html
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let mut arguments = std::env::args().skip(1);
    let address: SocketAddr =
        arguments.next().expect("site ADDRESS [PAGES]").parse().expect("an address and port");
    let pages: u64 = arguments.next().map_or(5_000, |n| n.parse().expect("a number of pages"));
    let front = Site::new().page("/", Page::html(page(0, pages))).robots("User-agent: *\nAllow: /\n");
    let site = (0..pages).fold(front, |site, number| {
        site.page(&format!("/p/{number}"), Page::html(page(number, pages)))
    });
    let _web = LocalWeb::start_at(address, site).await.expect("the address can be bound");
    println!("http://{address}/");
    std::future::pending::<()>().await;
}
