//! Why a URL is not in the corpus: one stable code each.

use std::fmt;

use crate::store::Coded;

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $word:literal, $text:literal;)*) => {
        /// Why a URL was not fetched, or its page not stored. The codes are stored; the
        /// words stand in output.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Reason {
            $(#[doc = $text] $name = $code,)*
        }

        impl Reason {
            /// Every reason.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// Returns the word for it in reports and counters.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => $word,)* }
            }

            /// Returns a sentence for people.
            #[must_use]
            pub fn describe(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }
        }
    };
}

reasons! {
    OutOfScope = 1, "out_of_scope", "outside the scope of the crawl";
    TooDeep = 2, "depth_limit", "more links away from a seed than --max-depth allows";
    UrlTooLong = 3, "url_too_long", "the URL exceeds the limit";
    PathTooDeep = 4, "path_too_deep", "the path has more segments than the limit";
    RepeatedSegment = 5, "repeated_segment", "one path segment repeats, as in a trap";
    RepeatedParameter = 6, "repeated_parameter", "one query parameter repeats, as in a trap";
    Nofollow = 7, "nofollow", "every link to it is marked nofollow";
    HostBudget = 8, "host_budget", "its host has as many URLs as the limit allows";
    RepeatedSequence = 9, "repeated_sequence", "some path segments repeat, as in a trap";
    NestedEscapes = 10, "nested_escapes", "a part of it is escaped over and over, as in a trap";
    Calendar = 11, "calendar", "a calendar turned to a month that is too far away";
    SessionInPath = 12, "session_in_path", "its path has the identifier of a session";
    HostInPath = 13, "host_in_path", "its path repeats the name of its host, as in a trap";
    DomainHosts = 14, "domain_hosts", "its domain has as many hosts as the limit allows";
    PatternBudget = 15, "pattern_budget", "as many URLs of its pattern as the limit allows";
    OffSite = 16, "off_site", "named only by a sitemap of another site";
    SitemapDepth = 17, "sitemap_depth", "a sitemap below more indexes than the limit allows";
    SitemapLimit = 18, "sitemap_limit", "its host has as many sitemaps as the limit allows";
    FeedLimit = 19, "feed_limit", "its host has as many feeds as the limit allows";
    NotASitemap = 25, "not_a_sitemap", "named as a sitemap, and it is none";
    NoSitemap = 26, "no_sitemap", "there is no sitemap at the usual place";
    HostSize = 29, "host_size", "the URLs of its host take as much room as the limit allows";
    RobotsDisallowed = 20, "robots_disallowed", "robots.txt of the host disallows it";
    AddressRefused = 21, "address_refused", "a private (see --allow-private) or reserved address";
    TooManyRedirects = 22, "too_many_redirects", "reached by more redirects than the limit";
    BadRedirect = 23, "bad_redirect", "redirects to something that is no web URL";
    Excluded = 27, "excluded", "a pattern of the filter excludes it";
    NotIncluded = 28, "not_included", "the filter includes other URLs only";
    NoYield = 24, "no_yield", "URLs of its kind have given nothing new for long";
    Dns = 30, "dns", "the host name cannot be resolved";
    Connect = 31, "connect", "no connection to the host";
    Tls = 32, "tls", "no secure connection to the host";
    Timeout = 33, "timeout", "the answer took longer than the limit";
    BadResponse = 34, "bad_response", "the answer is not valid HTTP or broke off";
    BadEncoding = 35, "bad_encoding", "the body cannot be decompressed";
    Bomb = 36, "decompression_bomb", "the body grows beyond measure when decompressed";
    RobotsUnreachable = 39, "robots_unreachable", "robots.txt of the host is unreachable";
    Proxy = 40, "proxy", "no connection with the proxy, or none through it";
    HttpError = 37, "http_error", "the server answered with an error status";
    Busy = 38, "busy", "the server kept answering that it is busy";
    SoftNotFound = 55, "soft_404", "the page is what its host answers for pages it does not have";
    Probe = 56, "probe", "asked to see what the host answers for pages it does not have";
    NoContent = 70, "no_content", "the server has nothing there (status 204 or 205)";
    PartialContent = 71, "partial_content", "a part that nobody asked for (status 206)";
    NotReady = 72, "not_ready", "the server has no page yet (status 202)";
    OtherStatus = 73, "other_status", "the status is none that a page comes with";
    NotAPage = 50, "not_a_page", "neither HTML nor plain text";
    Binary = 74, "binary", "binary data, though its type says that it is text";
    NoText = 51, "no_text", "the page has no main text";
    Unreadable = 53, "unreadable", "the page made the reader fail: please report it";
    Expired = 54, "expired", "its document was removed after the time that was set";
    Gone = 60, "gone", "the server has said again and again that it is no longer there";
    Sitemap = 61, "sitemap", "it is a sitemap: no document, its entries were offered";
    Feed = 62, "feed", "it is a feed: no document, its entries were offered";
    Noindex = 52, "noindex", "the page asks not to be indexed";
}

impl Coded for Reason {
    fn code(self) -> u64 {
        self as u64
    }

    fn from_code(code: u64) -> Option<Self> {
        Self::ALL.iter().copied().find(|reason| *reason as u64 == code)
    }
}

impl Reason {
    /// Tells whether the URL was turned away before any visit, or was asked for as a sitemap
    /// only, so that new settings or a better link can let it in.
    #[must_use]
    pub fn before_visit(self) -> bool {
        (self as u8) < 20 || self == Self::HostSize || self.is_no_sitemap() || self.is_of_filter()
    }

    /// It was asked for as a sitemap, and is none.
    pub(super) fn is_no_sitemap(self) -> bool {
        matches!(self, Self::NotASitemap | Self::NoSitemap)
    }
}

impl Reason {
    /// Tells whether nobody named it as a page: the crawler asked for it of itself, to learn how
    /// the host answers, or as a list of pages.
    #[must_use]
    pub fn is_own(self) -> bool {
        matches!(self, Self::Probe | Self::NoSitemap | Self::Sitemap | Self::Feed)
    }

    /// Tells whether the page was asked for and could not be had.
    #[must_use]
    pub fn is_error(self) -> bool {
        matches!(
            self,
            Self::Dns
                | Self::Connect
                | Self::Tls
                | Self::Timeout
                | Self::BadResponse
                | Self::BadEncoding
                | Self::Bomb
                | Self::RobotsUnreachable
                | Self::Proxy
                | Self::HttpError
                | Self::Busy
                | Self::BadRedirect
                | Self::TooManyRedirects
                | Self::SoftNotFound
                | Self::Gone
        )
    }

    /// Tells whether another visit is not likely to find anything better.
    #[must_use]
    pub fn is_lasting(self) -> bool {
        matches!(
            self,
            Self::Gone
                | Self::NotAPage
                | Self::Binary
                | Self::BadRedirect
                | Self::TooManyRedirects
                | Self::RobotsDisallowed
                | Self::AddressRefused
        )
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why only the start of a page was read. The codes are stored; the words stand in output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum PageCut {
    /// Its body was longer than a limit, or broke off.
    Body = 1,
    /// It has more bytes than are read.
    Input = 2,
    /// Its tree would be larger than it may be.
    Tree = 3,
}

impl Coded for PageCut {
    fn code(self) -> u64 {
        self as u64
    }

    fn from_code(code: u64) -> Option<Self> {
        [Self::Body, Self::Input, Self::Tree].into_iter().find(|cut| *cut as u64 == code)
    }
}

impl PageCut {
    /// Returns the word for it in reports.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Body => "body",
            Self::Input => "input",
            Self::Tree => "tree",
        }
    }
}
