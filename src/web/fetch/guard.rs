//! Which IP addresses may be contacted at all.
//!
//! Source: the IANA special-purpose address registries (RFC 6890 and its updates), which
//! `tests/it/guard.rs` holds whole; what they call globally reachable passes.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Addresses at which cloud providers hand out credentials to their machines: most of them; the
/// containers of AWS; Alibaba; Azure, which is a public address; Oracle.
const METADATA: [Ipv4Addr; 5] = [
    Ipv4Addr::new(169, 254, 169, 254),
    Ipv4Addr::new(169, 254, 170, 2),
    Ipv4Addr::new(100, 100, 100, 200),
    Ipv4Addr::new(168, 63, 129, 16),
    Ipv4Addr::new(192, 0, 0, 192),
];

/// The same of AWS, over IPv6.
const METADATA_V6: Ipv6Addr = Ipv6Addr::new(0xFD00, 0xEC2, 0, 0, 0, 0, 0, 0x254);

/// What kind of special address it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressClass {
    /// This machine, or a network that is not the public one.
    Private(&'static str),
    /// Nothing that any crawl could want.
    Never(&'static str),
}

/// An address that must not be contacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub struct Refused {
    /// The address.
    pub ip: IpAddr,
    /// Its kind.
    pub class: AddressClass,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (AddressClass::Private(kind) | AddressClass::Never(kind)) = self.class;
        write!(f, "{} is a {kind} address", self.ip)
    }
}

/// Decides which addresses are contacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddressGuard {
    /// Loopback and private networks may be contacted.
    pub allow_private: bool,
}

impl AddressGuard {
    /// Checks one address.
    pub fn check(self, ip: IpAddr) -> Result<(), Refused> {
        match class(ip) {
            None => Ok(()),
            Some(AddressClass::Private(_)) if self.allow_private => Ok(()),
            Some(class) => Err(Refused { ip, class }),
        }
    }
}

/// Returns what is special about an address; none for a public one.
#[must_use]
pub fn class(ip: IpAddr) -> Option<AddressClass> {
    match ip {
        IpAddr::V4(ip) => class_v4(ip),
        IpAddr::V6(ip) => class_v6(ip),
    }
}

fn class_v4(ip: Ipv4Addr) -> Option<AddressClass> {
    use AddressClass::{Never, Private};
    if METADATA.contains(&ip) {
        return Some(Never("cloud metadata"));
    }
    Some(match ip.octets() {
        [0, ..] => Never("this-network"),
        [127, ..] => Private("loopback"),
        [10, ..] | [192, 168, ..] | [172, 16..=31, ..] => Private("private"),
        [100, 64..=127, ..] => Private("shared (carrier NAT)"),
        [169, 254, ..] => Private("link-local"),
        [192, 0, 0, 9 | 10] => return None,
        [192, 0, 0, _] => Never("protocol assignment"),
        [192, 0, 2, _] | [198, 51, 100, _] | [203, 0, 113, _] => Never("documentation"),
        [198, 18..=19, ..] => Never("benchmarking"),
        [192, 88, 99, _] => Never("6to4 relay"),
        [224..=239, ..] => Never("multicast"),
        [240..=255, ..] => Never("reserved"),
        _ => return None,
    })
}

fn class_v6(ip: Ipv6Addr) -> Option<AddressClass> {
    use AddressClass::{Never, Private};
    if ip == METADATA_V6 {
        return Some(Never("cloud metadata"));
    }
    Some(match ip.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0] => Never("unspecified"),
        [0, 0, 0, 0, 0, 0, 0, 1] => Private("loopback"),
        // Forms of an IPv4 address that no packet on the Internet has.
        [0, 0, 0, 0, 0, 0, a, b] => class_v4(v4(a, b)).unwrap_or(Never("IPv4-compatible")),
        [0, 0, 0, 0, 0, 0xFFFF, a, b] => class_v4(v4(a, b)).unwrap_or(Never("IPv4-mapped")),
        [0, 0, 0, 0, 0xFFFF, 0, a, b] => class_v4(v4(a, b)).unwrap_or(Never("IPv4-translated")),
        // NAT64, 6to4, and Teredo, which stores the client's address with all bits flipped.
        [0x64, 0xFF9B, 0, 0, 0, 0, a, b] | [0x2002, a, b, ..] => return class_v4(v4(a, b)),
        [0x2001, 0, _, _, _, _, a, b] => return class_v4(v4(!a, !b)),
        [0x64, 0xFF9B, 1, ..] if local_nat64(ip).any(|ip| METADATA.contains(&ip)) => {
            Never("cloud metadata")
        }
        [0x64, 0xFF9B, 1, ..] => Private("local NAT64"),
        [0xFC00..=0xFDFF, ..] => Private("unique local"),
        [0xFE80..=0xFEBF, ..] => Private("link-local"),
        [0xFEC0..=0xFEFF, ..] => Private("site-local"),
        [0xFF00..=0xFFFF, ..] => Never("multicast"),
        [0x2001, 0xDB8, ..] | [0x3FFF, 0..=0xFFF, ..] => Never("documentation"),
        [0x2001, 1, 0, 0, 0, 0, 0, 1..=3]
        | [0x2001, 3 | 0x20..=0x3F, ..]
        | [0x2001, 4, 0x112, ..] => return None,
        [0x2001, 2, 0, ..] => Never("benchmarking"),
        [0x2001, 0..=0x1FF, ..] => Never("protocol assignment"),
        [0x0100, 0, 0, 0, ..] => Never("discard-only"),
        [0x0100, 0, 0, 1, ..] => Never("dummy"),
        [0x5F00, ..] => Never("segment routing"),
        _ => return None,
    })
}

fn v4(high: u16, low: u16) -> Ipv4Addr {
    let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
    Ipv4Addr::new(a, b, c, d)
}

/// The IPv4 addresses that may be meant inside `64:ff9b:1::/48`, of which a network makes prefixes
/// of four lengths. Source: RFC 6052, 2.2; RFC 8215.
fn local_nat64(ip: Ipv6Addr) -> impl Iterator<Item = Ipv4Addr> {
    let bytes = ip.octets();
    let places = [[6, 7, 9, 10], [7, 9, 10, 11], [9, 10, 11, 12], [12, 13, 14, 15]];
    places.into_iter().map(move |places| Ipv4Addr::from(places.map(|place| bytes[place])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(ip: &str, private: bool, public: bool) {
        let ip: IpAddr = ip.parse().unwrap();
        assert_eq!(
            AddressGuard { allow_private: true }.check(ip).is_ok(),
            private,
            "{ip} if allowed"
        );
        assert_eq!(AddressGuard { allow_private: false }.check(ip).is_ok(), public, "{ip}");
    }

    #[test]
    fn public_addresses_pass_at_both_borders_of_every_range() {
        for ip in [
            "1.1.1.1",
            "9.255.255.255",
            "11.0.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "192.167.255.255",
            "192.169.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "169.253.255.255",
            "169.255.0.0",
            "223.255.255.255",
            "198.17.0.1",
            "198.20.0.0",
            "2606:4700::1111",
            "fbff::1",
            "3fff:1000::1",
            "100:0:0:2::1",
            "192.0.1.1",
            "192.0.3.1",
            "198.51.99.255",
            "198.51.101.0",
            "203.0.112.255",
            "192.88.98.1",
            "2001:0:0:0:0:0:fefe:fefe",
            "64:ff9b::101:101",
            "168.63.129.15",
            "168.63.129.17",
        ] {
            check(ip, true, true);
        }
    }

    #[test]
    fn private_addresses_pass_only_if_allowed() {
        for ip in [
            "127.0.0.1",
            "127.255.255.255",
            "10.0.0.0",
            "10.255.255.255",
            "172.16.0.0",
            "172.31.255.255",
            "192.168.0.0",
            "192.168.255.255",
            "100.64.0.0",
            "100.127.255.255",
            "169.254.0.1",
            "169.254.170.3",
            "100.100.100.199",
            "fd00:ec2::253",
            "::1",
            "fc00::1",
            "fdff::1",
            "fe80::1",
            "febf::1",
            "fec0::1",
            "feff::1",
            "::ffff:127.0.0.1",
            "64:ff9b::7f00:1",
            "2002:7f00:1::",
        ] {
            check(ip, true, false);
        }
    }

    #[test]
    fn some_addresses_never_pass() {
        for ip in [
            "0.0.0.0",
            "169.254.169.254",
            "169.254.170.2",
            "100.100.100.200",
            "168.63.129.16",
            "192.0.0.192",
            "fd00:ec2::254",
            "::ffff:168.63.129.16",
            "224.0.0.1",
            "255.255.255.255",
            "240.0.0.0",
            "239.255.255.255",
            "192.0.0.1",
            "192.0.2.1",
            "198.51.100.0",
            "198.51.100.255",
            "203.0.113.1",
            "198.18.0.1",
            "198.19.255.255",
            "192.88.99.1",
            "100::1",
            "3fff::1",
            "3fff:fff::1",
            "::",
            "ff02::1",
            "2001:db8::1",
            "::ffff:169.254.169.254",
            "2001:0:1:2:3:4:5601:5601",
        ] {
            check(ip, false, false);
        }
    }
}
