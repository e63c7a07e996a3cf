//! What is said of a URL, in the languages of the dashboard.

use std::ops::AddAssign;

use crate::frontier::rules::UrlChange;
use crate::frontier::{PageCut, Reason};
use crate::neardup::Key;
use crate::web::discover::{Faults, ListCut, ListFault, ListKind};

/// A language in which a URL can be explained.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Language {
    /// English.
    #[default]
    English,
    /// Chinese.
    Chinese,
}

impl Language {
    /// Every language, by its code.
    pub const ALL: [(&'static str, Self); 2] = [("en", Self::English), ("zh", Self::Chinese)];
}

/// A text in each language.
#[derive(Debug, Clone)]
pub(super) struct Said {
    pub en: String,
    pub zh: String,
}

/// Makes a text of two patterns with the same arguments.
macro_rules! said {
    ($en:literal, $zh:literal $(, $argument:expr)* $(,)?) => {
        $crate::corpus::explain::words::Said {
            en: format!($en $(, $argument)*),
            zh: format!($zh $(, $argument)*),
        }
    };
}
pub(super) use said;

impl Said {
    pub(super) fn in_language(self, language: Language) -> String {
        match language {
            Language::English => self.en,
            Language::Chinese => self.zh,
        }
    }
}

/// What is no text of ours, such as a number or a URL, is the same in all languages.
impl From<String> for Said {
    fn from(text: String) -> Self {
        Self { en: text.clone(), zh: text }
    }
}

impl AddAssign for Said {
    fn add_assign(&mut self, other: Self) {
        self.en += &other.en;
        self.zh += &other.zh;
    }
}

/// Facts, each with its name, in order.
#[derive(Debug, Default)]
pub(super) struct ExplainedFacts(Vec<(&'static str, Said)>);

impl ExplainedFacts {
    pub(super) fn add(&mut self, name: &'static str, value: impl Into<Said>) {
        self.0.push((name, value.into()));
    }

    pub(super) fn in_language(self, language: Language) -> Vec<(String, String)> {
        let name = |en: &'static str| match language {
            Language::English => en,
            Language::Chinese => {
                NAMES.iter().find(|(name, _)| *name == en).map_or(en, |(_, zh)| zh)
            }
        };
        let facts = self.0.into_iter();
        facts.map(|(en, value)| (name(en).to_owned(), value.in_language(language))).collect()
    }
}

/// The names of all facts. A test sees to it that none is missing.
const NAMES: &[(&str, &str)] = &[
    ("alias of docId", "别名所指的 docId"),
    ("asked for", "请求的原因"),
    ("asks for", "页面要求"),
    ("boilerplate removed", "已去除的重复文本"),
    ("busy answers", "繁忙回应"),
    ("canonical popularity", "主副本热度"),
    ("changes seen", "见到的变化"),
    ("copies", "副本数"),
    ("crawl delay", "抓取间隔"),
    ("depth", "深度"),
    ("discovered", "发现时间"),
    ("distance", "指纹距离"),
    ("docId", "docId"),
    ("docId of that page", "该页面的 docId"),
    ("docId of the feed", "信息源给出的 docId"),
    ("entries", "条目"),
    ("entries of other sites", "其他网站的条目"),
    ("entries queued", "已排队的条目"),
    ("entries refused", "被拒绝的条目"),
    ("entries without URL", "没有地址的条目"),
    ("URLs not kept", "未保留的地址"),
    ("faults read over", "读过的错误"),
    ("failed tries", "失败次数"),
    ("feed", "信息源"),
    ("feed says", "信息源的说法"),
    ("feed was right", "信息源的正确率"),
    ("filter", "过滤规则"),
    ("found", "来源"),
    ("found on", "发现于"),
    ("host", "主机"),
    ("host IP address", "主机 IP 地址"),
    ("host busy answers", "主机的繁忙回应"),
    ("host circuit breaker", "主机断路器"),
    ("host backing off", "暂不打扰主机"),
    ("host next request", "主机下次请求"),
    ("host queue", "主机队列"),
    ("host response time", "主机回应时间"),
    ("hosts of its domain", "其域名的主机数"),
    ("indexes above it", "上级索引数"),
    ("interval", "访问间隔"),
    ("kind of URL", "地址类别"),
    ("last change", "最近变化"),
    ("last visit failed", "最近访问失败"),
    ("linking hosts", "链接它的主机数"),
    ("links not followed", "未跟随的链接"),
    ("links of its pattern", "同类地址数"),
    ("named by", "由谁指出"),
    ("names as canonical", "声明的规范地址"),
    ("next visit", "下次访问"),
    ("not found", "未找到"),
    ("not modified", "未修改"),
    ("not read to its end", "未读完的原因"),
    ("pairs that held", "成立的配对"),
    ("popularity", "热度"),
    ("read as", "读作"),
    ("found by", "识别依据"),
    ("redirects before it", "之前的重定向"),
    ("robots.txt", "robots.txt"),
    ("rule", "规则"),
    ("similarity", "相似度"),
    ("status", "状态码"),
    ("title", "标题"),
    ("truncated", "已截断"),
    ("visited", "访问时间"),
];

pub(super) fn ms(time: impl std::fmt::Display) -> Said {
    said!("{time} ms", "{time} 毫秒")
}

pub(super) fn in_a_row(times: impl std::fmt::Display) -> Said {
    said!("{times} times in a row", "连续 {times} 次")
}

/// Why only the start of a page was read.
pub(super) fn cut_page(cut: PageCut) -> Said {
    match cut {
        PageCut::Body => said!("longer than a limit, or it broke off", "超过长度上限，或中途断开"),
        PageCut::Input => said!("more bytes than are read", "超过读取的字节上限"),
        PageCut::Tree => said!(
            "more elements, or more memory for them, than a page may have",
            "元素数量或其内存超过每页上限"
        ),
    }
}

/// The sentence for a reason.
pub(super) fn describe(reason: Reason) -> Said {
    Said { en: reason.describe().to_owned(), zh: self::reason(reason).to_owned() }
}

/// The sentence for a reason in Chinese.
pub(super) fn reason(reason: Reason) -> &'static str {
    match reason {
        Reason::OutOfScope => "不在抓取范围内",
        Reason::TooDeep => "离种子的链接数超过 --max-depth",
        Reason::UrlTooLong => "地址长度超过上限",
        Reason::PathTooDeep => "路径段数超过上限",
        Reason::RepeatedSegment => "同一路径段反复出现，像是陷阱",
        Reason::RepeatedParameter => "同一查询参数反复出现，像是陷阱",
        Reason::Nofollow => "所有指向它的链接都标为 nofollow",
        Reason::HostSize => "其主机的地址所占空间已达上限",
        Reason::HostBudget => "其主机的地址数已达上限",
        Reason::RepeatedSequence => "一组路径段反复出现，像是陷阱",
        Reason::NestedEscapes => "其中一部分被反复转义，像是陷阱",
        Reason::Calendar => "日历翻到了过远的月份",
        Reason::SessionInPath => "路径含有会话标识",
        Reason::HostInPath => "路径重复其主机名，像是陷阱",
        Reason::DomainHosts => "其域名的主机数已达上限",
        Reason::PatternBudget => "同类地址数已达上限",
        Reason::OffSite => "只有其他网站的站点地图提到它",
        Reason::SitemapDepth => "站点地图之上的索引层数超过上限",
        Reason::SitemapLimit => "其主机的站点地图数已达上限",
        Reason::FeedLimit => "其主机的订阅源数已达上限",
        Reason::NotASitemap => "被称为站点地图，实际不是",
        Reason::NoSitemap => "通常位置没有站点地图",
        Reason::RobotsDisallowed => "主机的 robots.txt 禁止访问",
        Reason::AddressRefused => "主机的 IP 地址是私有（见 --allow-private）或保留地址",
        Reason::TooManyRedirects => "到达它的重定向次数超过上限",
        Reason::BadRedirect => "重定向到的不是网页地址",
        Reason::Excluded => "被过滤规则排除",
        Reason::NotIncluded => "过滤规则只包含其他地址",
        Reason::NoYield => "同类地址长期没有新内容",
        Reason::Dns => "主机名无法解析",
        Reason::Connect => "无法连接主机",
        Reason::Tls => "无法与主机建立安全连接",
        Reason::Timeout => "回应时间超过上限",
        Reason::BadResponse => "回应不是有效的 HTTP，或中途断开",
        Reason::BadEncoding => "正文无法解压",
        Reason::Bomb => "正文解压后过大",
        Reason::RobotsUnreachable => "无法取得主机的 robots.txt",
        Reason::Proxy => "无法连接代理，或代理无法连接",
        Reason::HttpError => "服务器回应了错误状态码",
        Reason::Busy => "服务器一直回应繁忙",
        Reason::SoftNotFound => "与主机对不存在页面的回应相同",
        Reason::Probe => "为了解主机对不存在页面的回应而请求",
        Reason::NoContent => "服务器那里没有内容（状态码 204 或 205）",
        Reason::PartialContent => "没有请求过的部分内容（状态码 206）",
        Reason::NotReady => "服务器尚无页面（状态码 202）",
        Reason::OtherStatus => "状态码不是页面所带的",
        Reason::Binary => "二进制数据，尽管类型说是文本",
        Reason::NotAPage => "既不是 HTML 也不是纯文本",
        Reason::NoText => "页面没有正文",
        Reason::Unreadable => "页面使读取程序出错：请报告",
        Reason::Expired => "其文档已按设定的时间移除",
        Reason::Gone => "服务器多次表示它已不存在",
        Reason::Sitemap => "它是站点地图：不是文档，其条目已列入",
        Reason::Feed => "它是订阅源：不是文档，其条目已列入",
        Reason::Noindex => "页面要求不被收录",
    }
}

pub(super) fn key(key: Key) -> Said {
    let [_, zh] = key.in_words();
    Said { en: key.as_str().to_owned(), zh: zh.to_owned() }
}

pub(super) fn kind(kind: ListKind) -> Said {
    let zh = match kind {
        ListKind::Index => "站点地图索引",
        ListKind::Set => "站点地图",
        ListKind::Text => "纯文本站点地图",
        ListKind::Rss => "RSS 订阅源",
        ListKind::Atom => "Atom 订阅源",
        ListKind::Json => "JSON 订阅源",
    };
    Said { en: kind.as_str().to_owned(), zh: zh.to_owned() }
}

pub(super) fn cut(cut: ListCut) -> Said {
    let zh = match cut {
        ListCut::Bytes => "字节数超过上限",
        ListCut::Entries => "条目数超过上限",
        ListCut::Syntax => "语法错误",
        ListCut::Broken => "中途断开",
        ListCut::Bomb => "解压后过大",
    };
    Said { en: cut.as_str().to_owned(), zh: zh.to_owned() }
}

/// Which faults a list has, and how many; none if it has none.
pub(super) fn faults(faults: &Faults) -> Option<Said> {
    let each = faults.counts().map(|(fault, count)| {
        let zh = match fault {
            ListFault::StrayEnd => "多余的结束标签",
            ListFault::Unclosed => "没有结束的元素",
            ListFault::Misplaced => "位置不对的地址",
            ListFault::Entity => "未知的实体",
            ListFault::Markup => "损坏的标记",
        };
        Said { en: format!("{count} {}", fault.as_str()), zh: format!("{count} 个{zh}") }
    });
    each.reduce(|mut all, one| {
        all += said!(", ", "，");
        all += one;
        all
    })
}

pub(super) fn change(change: &UrlChange) -> Said {
    let zh = match change {
        UrlChange::DropParameter(name) => format!("去掉参数 `{name}`"),
        UrlChange::DropValue(value) => format!("去掉 `{value}`"),
        UrlChange::DropFolder(folder) => format!("去掉目录 `{folder}`"),
        UrlChange::SwapFolder(from, to) => format!("把目录 `{from}` 读作 `{to}`"),
        UrlChange::DropSuffix(suffix) => format!("去掉末尾的 `{suffix}`"),
        UrlChange::Host(from, to) => format!("把 {from} 读作 {to}"),
    };
    Said { en: change.to_string(), zh }
}
