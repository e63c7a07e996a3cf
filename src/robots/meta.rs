//! What a page itself asks of crawlers: `<meta name="robots">` and `X-Robots-Tag`.

/// Directives that take a value after a colon, so that the colon does not end an agent's name.
const WITH_VALUE: [&str; 4] =
    ["unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"];

/// What a page asks for. Everything is allowed by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(clippy::struct_excessive_bools, reason = "four independent switches of the page")]
pub struct Directives {
    /// Do not store the page.
    pub noindex: bool,
    /// Do not follow its links.
    pub nofollow: bool,
    /// Do not show a stored copy.
    pub noarchive: bool,
    /// Do not show parts of its text.
    pub nosnippet: bool,
}

impl Directives {
    /// Reads a `<meta>` element. Names other than `robots` and `agent` are for others.
    #[must_use]
    pub fn from_meta(name: &str, content: &str, agent: &str) -> Self {
        let name = name.trim();
        if name.eq_ignore_ascii_case("robots") || name.eq_ignore_ascii_case(agent) {
            Self::parse(content)
        } else {
            Self::default()
        }
    }

    /// Reads one `X-Robots-Tag` header, which may be for one agent only: `agent: noindex`.
    #[must_use]
    pub fn from_header(value: &str, agent: &str) -> Self {
        if let Some((name, rest)) = value.split_once(':') {
            let name = name.trim();
            let is_name = !name.contains(',')
                && !WITH_VALUE.iter().any(|known| name.eq_ignore_ascii_case(known));
            if is_name {
                return if name.eq_ignore_ascii_case(agent) {
                    Self::parse(rest)
                } else {
                    Self::default()
                };
            }
        }
        Self::parse(value)
    }

    /// Returns what holds if both hold: the stricter of each.
    #[must_use]
    pub fn merge(&self, other: &Self) -> Self {
        Self {
            noindex: self.noindex || other.noindex,
            nofollow: self.nofollow || other.nofollow,
            noarchive: self.noarchive || other.noarchive,
            nosnippet: self.nosnippet || other.nosnippet,
        }
    }

    fn parse(content: &str) -> Self {
        let mut all = Self::default();
        for word in content.split([',', ' ', '\t']).map(str::trim) {
            match word.to_ascii_lowercase().as_str() {
                "none" => (all.noindex, all.nofollow) = (true, true),
                "noindex" => all.noindex = true,
                "nofollow" => all.nofollow = true,
                "noarchive" | "nocache" => all.noarchive = true,
                "nosnippet" => all.nosnippet = true,
                _ => {}
            }
        }
        all
    }
}
