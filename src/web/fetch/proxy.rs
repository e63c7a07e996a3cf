//! Proxies: which ones, and what the guard means with them.
//!
//! Every name is resolved and checked by us before a request goes to a proxy, so that a page
//! cannot use the proxy to reach its network. A SOCKS proxy is then given the IP address that was
//! checked. An HTTP proxy is given the name and resolves it once more, which is as far as HTTP
//! lets us go. The proxies themselves are named by the operator and may be private.

use std::collections::BTreeSet;

use url::Url;

use super::Error;

/// Schemes of proxies. `socks5h` is not among them: with it the proxy alone resolves names.
const SCHEMES: [&str; 3] = ["http", "https", "socks5"];

/// Reads the addresses of proxies.
pub(super) fn parse(proxies: &[String]) -> Result<Vec<Url>, Error> {
    let read = |text: &String| {
        let bad = |why| Error::Proxy { proxy: masked(text), why };
        let url = Url::parse(text).map_err(|_| bad("it is no URL"))?;
        if !SCHEMES.contains(&url.scheme()) {
            return Err(bad("use http, https or socks5"));
        }
        if url.host_str().is_none_or(str::is_empty) {
            return Err(bad("it has no host"));
        }
        Ok(url)
    };
    proxies.iter().map(read).collect()
}

/// Returns the names of the proxies, in small letters.
pub(super) fn names(proxies: &[Url]) -> BTreeSet<String> {
    proxies.iter().filter_map(Url::host_str).map(str::to_ascii_lowercase).collect()
}

/// Hides what stands between `://` and `@`: the user name and the password of a proxy.
#[must_use]
pub(crate) fn masked(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return text.to_owned() };
    let end = rest.find(['/', '?', '#', '"']).unwrap_or(rest.len());
    match rest[..end].rfind('@') {
        Some(at) => format!("{scheme}://***{}", &rest[at..]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_names_and_passwords_are_hidden() {
        assert_eq!(masked("http://u:p@h:1/"), "http://***@h:1/");
        assert_eq!(masked("socks5://u:p@q@h"), "socks5://***@h");
        assert_eq!(masked("http://h/a@b"), "http://h/a@b");
        assert_eq!(masked("nothing"), "nothing");
    }

    #[test]
    fn only_proxies_that_leave_the_names_to_us_are_taken() {
        let one = |text: &str| parse(&[text.to_owned()]).map_err(|error| error.to_string());
        for good in ["http://h:3128", "https://u:p@h", "socks5://127.0.0.1:1080"] {
            assert!(one(good).is_ok(), "{good}");
        }
        for bad in ["h:3128", "socks5h://u:secret@h", "socks4://h", "", "http://"] {
            let error = one(bad).unwrap_err();
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
