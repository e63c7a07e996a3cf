//! The guard of addresses against the registries of the IANA, row by row.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use uniqcrawl::web::fetch::guard::AddressGuard;

/// What the column "Globally Reachable" says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    Global,
    Not,
    /// It depends on the IPv4 address inside.
    Inner,
}
use Reach::{Global, Inner, Not};

/// IANA IPv4 Special-Purpose Address Registry, whole, and multicast.
/// Source: <https://www.iana.org/assignments/iana-ipv4-special-registry/>.
const V4: [(&str, u8, Reach); 28] = [
    ("0.0.0.0", 8, Not),
    ("0.0.0.0", 32, Not),
    ("10.0.0.0", 8, Not),
    ("100.64.0.0", 10, Not),
    ("127.0.0.0", 8, Not),
    ("169.254.0.0", 16, Not),
    ("172.16.0.0", 12, Not),
    ("192.0.0.0", 24, Not),
    ("192.0.0.0", 29, Not),
    ("192.0.0.8", 32, Not),
    ("192.0.0.9", 32, Global),
    ("192.0.0.10", 32, Global),
    ("192.0.0.170", 32, Not),
    ("192.0.0.171", 32, Not),
    ("192.0.2.0", 24, Not),
    ("192.31.196.0", 24, Global),
    ("192.52.193.0", 24, Global),
    ("192.88.99.0", 24, Not),
    ("192.88.99.2", 32, Not),
    ("192.168.0.0", 16, Not),
    ("192.175.48.0", 24, Global),
    ("198.18.0.0", 15, Not),
    ("198.51.100.0", 24, Not),
    ("203.0.113.0", 24, Not),
    ("224.0.0.0", 4, Not),
    ("233.252.0.0", 24, Not),
    ("240.0.0.0", 4, Not),
    ("255.255.255.255", 32, Not),
];

/// IANA IPv6 Special-Purpose Address Registry, whole; then what older standards have set apart,
/// and multicast. Source: <https://www.iana.org/assignments/iana-ipv6-special-registry/>.
const V6: [(&str, u8, Reach); 31] = [
    ("::1", 128, Not),
    ("::", 128, Not),
    ("::ffff:0:0", 96, Not),
    ("64:ff9b::", 96, Inner),
    ("64:ff9b:1::", 48, Not),
    ("100::", 64, Not),
    ("100:0:0:1::", 64, Not),
    ("2001::", 23, Not),
    ("2001::", 32, Inner),
    ("2001:1::1", 128, Global),
    ("2001:1::2", 128, Global),
    ("2001:1::3", 128, Global),
    ("2001:2::", 48, Not),
    ("2001:3::", 32, Global),
    ("2001:4:112::", 48, Global),
    ("2001:10::", 28, Not),
    ("2001:20::", 28, Global),
    ("2001:30::", 28, Global),
    ("2001:db8::", 32, Not),
    ("2002::", 16, Inner),
    ("2620:4f:8000::", 48, Global),
    ("3fff::", 20, Not),
    ("5f00::", 16, Not),
    ("fc00::", 7, Not),
    ("fe80::", 10, Not),
    // IPv4-compatible (RFC 4291, 2.5.5.1), IPv4-translated (RFC 2765), site-local (RFC 3879).
    ("::", 96, Not),
    ("::ffff:0:0:0", 96, Not),
    ("fec0::", 10, Not),
    ("ff00::", 8, Not),
    // Two that have no row: public addresses of today.
    ("2600::", 12, Global),
    ("2a00::", 12, Global),
];

/// A prefix as its first and its last address.
fn range((prefix, length, reach): &(&str, u8, Reach)) -> (u128, u128, u32, Reach) {
    let (first, bits) = match prefix.parse().unwrap() {
        IpAddr::V4(ip) => (u128::from(u32::from(ip)), 32),
        IpAddr::V6(ip) => (u128::from(ip), 128),
    };
    let free = bits - u32::from(*length);
    (first, first + (1u128.checked_shl(free).unwrap_or(0)).wrapping_sub(1), free, *reach)
}

/// Checks addresses at both ends and in the middle of each row, and beside it, against the row
/// with the longest prefix. Returns how many there were, and what is wrong.
fn check(
    rows: &[(&str, u8, Reach)],
    ip: impl Fn(u128) -> IpAddr,
    last: u128,
) -> (usize, Vec<String>) {
    let ranges: Vec<_> = rows.iter().map(range).collect();
    let mut addresses: Vec<u128> = Vec::new();
    for (from, to, ..) in &ranges {
        let beside = [from.checked_sub(1), to.checked_add(1).filter(|next| *next <= last)];
        addresses.extend([*from, from + (to - from) / 2, from + (to - from) / 3, *to]);
        addresses.extend(beside.into_iter().flatten());
    }
    let mut wrong = Vec::new();
    let checked = addresses.len();
    for address in addresses {
        let rows = ranges.iter().filter(|(from, to, ..)| (from..=to).contains(&&address));
        let row = rows.min_by_key(|(_, _, free, _)| *free);
        let reach = row.map_or(Global, |(.., reach)| *reach);
        let passes = AddressGuard { allow_private: false }.check(ip(address)).is_ok();
        if reach != Inner && passes != (reach == Global) {
            wrong.push(format!("{} is {reach:?} and passes: {passes}", ip(address)));
        }
    }
    (checked, wrong)
}

#[test]
fn what_the_registries_call_not_global_is_refused_and_the_rest_passes() {
    let (v4, mut wrong) = check(&V4, |n| Ipv4Addr::from(n as u32).into(), u32::MAX.into());
    let (v6, more) = check(&V6, |n| Ipv6Addr::from(n).into(), u128::MAX);
    assert!(v4 > 150 && v6 > 170, "{v4} and {v6} addresses");
    wrong.extend(more);
    assert!(wrong.is_empty(), "{} of {}: {wrong:#?}", wrong.len(), v4 + v6);
}

#[test]
fn no_form_of_an_ipv4_address_gets_around_the_guard() {
    let not: Vec<Ipv4Addr> = V4
        .iter()
        .filter(|(.., reach)| *reach == Not)
        .map(|(prefix, ..)| prefix.parse().unwrap())
        .chain([Ipv4Addr::new(169, 254, 169, 254), Ipv4Addr::new(168, 63, 129, 16)])
        .collect();
    let strict = AddressGuard { allow_private: false };
    for inner in not {
        let [a, b, c, d] = inner.octets();
        let (high, low) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
        let forms = [
            Ipv6Addr::new(0, 0, 0, 0, 0, 0, high, low),
            Ipv6Addr::new(0, 0, 0, 0, 0, 0xFFFF, high, low),
            Ipv6Addr::new(0, 0, 0, 0, 0xFFFF, 0, high, low),
            Ipv6Addr::new(0x64, 0xFF9B, 0, 0, 0, 0, high, low),
            Ipv6Addr::new(0x64, 0xFF9B, 1, 0, 0, 0, high, low),
            Ipv6Addr::new(0x64, 0xFF9B, 1, high, low >> 8, low << 8, 0, 0),
            Ipv6Addr::new(0x2002, high, low, 0, 0, 0, 0, 1),
            Ipv6Addr::new(0x2001, 0, 0x101, 0x101, 0, 0, !high, !low),
        ];
        for form in forms {
            assert!(strict.check(form.into()).is_err(), "{form} holds {inner}");
        }
    }
    // Networks of one's own pass if they may, and what gives out credentials never does.
    let open = AddressGuard { allow_private: true };
    let passes = |ip: &str| open.check(ip.parse().unwrap()).is_ok();
    for own in ["::127.0.0.1", "::ffff:0:10.0.0.1", "64:ff9b:1::10.0.0.1", "64:ff9b:1:808:8:800::"]
    {
        assert!(passes(own), "{own}");
    }
    for never in [
        "::169.254.169.254",
        "::ffff:0:169.254.169.254",
        "64:ff9b:1::169.254.169.254",
        "64:ff9b:1:a9fe:a9:fe00::",
        "64:ff9b:1:a9:fe:a9fe::",
        "64:ff9b:1:0:a9:fea9:fe00::",
        "::8.8.8.8",
        "::ffff:0:8.8.8.8",
    ] {
        assert!(!passes(never), "{never}");
    }
}
