//! Bylines in Chinese texts: 作者：张三, 记者 李四 王五, （记者樊亮）, 责任编辑：赵六.

use std::sync::LazyLock;

use crate::text::is_han;

/// Family names of one character that are common, simplified and traditional.
const FAMILY: &str = "王李张張刘劉陈陳杨楊黄黃赵趙周吴吳徐孙孫朱马馬胡郭林何高梁郑鄭罗羅宋谢謝唐韩韓\
曹许許邓鄧萧蕭冯馮曾程蔡彭潘袁于董余苏蘇叶葉吕呂魏蒋蔣田杜丁沈姜范范江傅钟鐘鍾卢盧汪戴崔任陆陸廖\
姚方金邱丘夏谭譚韦韋贾賈邹鄒石熊孟秦阎閻薛侯雷白龙龍段郝孔邵史毛常万萬顾顧赖賴武康贺賀严嚴尹钱錢\
施牛洪龚龔汤湯陶黎温溫莫易樊乔喬文安殷颜顏庄莊章鲁魯倪庞龐邢俞翟蓝藍聂聶齐齊向申葛柴伍覃骆駱关關\
焦柳欧歐祝纪紀尚毕畢耿芦左季管符辛苗詹曲靳祁路涂兰蘭甘裴梅童翁霍游阮尤岳柯牟滕谷舒卜成饶饒宁寧凌\
盛查单單冉鲍鮑华華包屈房喻解蒲卫衛简簡时時连連车車项項闵閔邬鄔吉党阳陽司费費蒙席晏隋古强強穆姬宫宮\
景米麦麥谈談柏瞿艾沙楚窦竇桂全信鹿娄婁郎池丛叢岑商苟敖臧佟荣榮桑刁鞠卓应應仇戚胥冷花封储儲惠占占\
练練伊麻郁栾欒习習湛仲巫褚位原鄢晋晉计計边邊展台粟底皮巩鞏言寿壽忆信代闫閆";

/// Family names of two characters.
const DOUBLE: [&str; 14] = [
    "欧阳", "歐陽", "司马", "司馬", "诸葛", "諸葛", "上官", "司徒", "东方", "東方", "皇甫", "尉迟",
    "慕容", "令狐",
];

/// What a label says of the names after it. The first is the best.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Credit {
    /// The author, called so.
    Author,
    /// The reporter.
    Reporter,
    /// A name in brackets at the end of the text.
    Signed,
    /// The translator or compiler.
    Compiler,
    /// The editor.
    Editor,
    /// The photographer.
    Picture,
}

/// Labels before names, and whether a mark must stand between.
const LABELS: [(&str, Credit, bool); 46] = [
    ("责任编辑", Credit::Editor, true),
    ("責任編輯", Credit::Editor, true),
    ("网络编辑", Credit::Editor, true),
    ("本文编辑", Credit::Editor, true),
    ("责编", Credit::Editor, true),
    ("責編", Credit::Editor, true),
    ("编辑", Credit::Editor, true),
    ("編輯", Credit::Editor, true),
    ("编译", Credit::Compiler, true),
    ("編譯", Credit::Compiler, true),
    ("翻译", Credit::Compiler, true),
    ("本报记者", Credit::Reporter, false),
    ("本報記者", Credit::Reporter, false),
    ("本网记者", Credit::Reporter, false),
    ("本刊记者", Credit::Reporter, false),
    ("特约记者", Credit::Reporter, false),
    ("见习记者", Credit::Reporter, false),
    ("实习记者", Credit::Reporter, false),
    ("实习生", Credit::Reporter, false),
    ("通讯员", Credit::Reporter, false),
    ("通訊員", Credit::Reporter, false),
    ("记者", Credit::Reporter, false),
    ("記者", Credit::Reporter, false),
    ("原作者", Credit::Author, true),
    ("作者", Credit::Author, true),
    ("撰文", Credit::Author, true),
    ("撰稿人", Credit::Author, true),
    ("撰稿", Credit::Author, true),
    ("采写", Credit::Author, true),
    ("採寫", Credit::Author, true),
    ("原创", Credit::Author, true),
    ("供稿", Credit::Author, true),
    ("投稿人", Credit::Author, true),
    ("发布者", Credit::Author, true),
    ("发布人", Credit::Author, true),
    ("发表者", Credit::Author, true),
    ("楼主", Credit::Author, true),
    ("博主", Credit::Author, true),
    ("著者", Credit::Author, true),
    ("執筆者", Credit::Author, true),
    ("執筆", Credit::Author, true),
    ("取材・文", Credit::Author, true),
    ("文|", Credit::Author, false),
    ("文｜", Credit::Author, false),
    ("文/", Credit::Author, false),
    ("文／", Credit::Author, false),
];

/// Words at the end of names of offices, not of persons.
const OFFICES: [&str; 30] = [
    "网",
    "網",
    "社",
    "报",
    "報",
    "报道",
    "報導",
    "中心",
    "公司",
    "集团",
    "部",
    "局",
    "委",
    "办",
    "台",
    "臺",
    "处",
    "组",
    "频道",
    "编辑",
    "記者",
    "记者",
    "晚报",
    "在线",
    "杂志",
    "协会",
    "学院",
    "大学",
    "政府",
    "办公室",
];

/// Words in the place of a name that are none.
const NO_NAMES: [&str; 20] = [
    "佚名",
    "未知",
    "本站",
    "网络",
    "互联网",
    "转载",
    "原创",
    "管理员",
    "综合",
    "不详",
    "来源",
    "來源",
    "匿名",
    "时间",
    "日期",
    "点击",
    "手机版",
    "编辑",
    "无",
    "小编",
];

/// Names after one label.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Byline {
    pub part: Credit,
    pub names: Vec<String>,
}

/// Tells whether a text has a character of a label.
fn may_have(text: &str) -> bool {
    ["者", "编", "編", "文", "稿", "采", "原", "译", "執", "员", "員", "主", "生", "人"]
        .iter()
        .any(|c| text.contains(c))
}

/// The low bytes of characters with which labels begin: most characters are told apart by them.
static STARTS: LazyLock<[bool; 256]> = LazyLock::new(|| {
    let mut starts = [false; 256];
    for c in LABELS.iter().filter_map(|(label, ..)| label.chars().next()) {
        starts[low_byte(c)] = true;
    }
    starts
});

fn low_byte(c: char) -> usize {
    c as usize & 0xFF
}

/// Returns the bylines of a text, in its order.
pub(super) fn bylines(text: &str) -> Vec<Byline> {
    let mut found: Vec<Byline> = Vec::new();
    if !may_have(text) {
        return found;
    }
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        let may_begin = STARTS[low_byte(c)];
        let label = LABELS.iter().find(|(label, ..)| may_begin && rest.starts_with(label));
        let Some((label, part, marked)) = label else {
            at += c.len_utf8();
            continue;
        };
        at += label.len();
        let (names, read) = names_after(&text[at..], *marked);
        at += read;
        // Who took the picture did not write the text.
        let picture = text[at..].trim_start_matches(is_gap);
        let picture = picture.starts_with(['摄', '攝', '图']) || picture.starts_with("编制");
        if names.is_empty() {
            continue;
        }
        let part = if picture { &Credit::Picture } else { part };
        // `记者 张三 通讯员 李四` is one byline.
        match found.last_mut().filter(|last| last.part == *part) {
            Some(last) if last.names.len() < 8 => {
                for name in names {
                    if !last.names.contains(&name) {
                        last.names.push(name);
                    }
                }
            }
            _ => found.push(Byline { part: *part, names }),
        }
    }
    found
}

fn is_gap(c: char) -> bool {
    c.is_whitespace() || c == '\u{3000}'
}

fn is_mark(c: char) -> bool {
    matches!(c, ':' | '：' | '/' | '／' | '|' | '｜' | '丨' | '＝' | '=' | '•' | '·' | '●' | '\\')
}

/// Reads the names after a label; returns them and the bytes that they take.
fn names_after(text: &str, marked: bool) -> (Vec<String>, usize) {
    let skipped = text.trim_start_matches(|c: char| is_gap(c) || is_mark(c));
    let gap = &text[..text.len() - skipped.len()];
    let has_mark = gap.contains(is_mark);
    if marked && !has_mark || gap.chars().count() > 40 {
        return (Vec::new(), 0);
    }
    // `作者：记者 武彩霞`: the inner label reads on.
    if LABELS.iter().any(|(label, ..)| skipped.starts_with(label)) {
        return (Vec::new(), gap.len());
    }
    let mut names = Vec::new();
    let mut rest = skipped;
    while names.len() < 8 {
        let strict = !has_mark || !names.is_empty();
        let Some((name, length)) = name(rest, strict) else { break };
        names.push(name);
        rest = &rest[length..];
        let next =
            rest.trim_start_matches(|c: char| is_gap(c) || matches!(c, '、' | '，' | ',' | '/'));
        if next.len() == rest.len() {
            break;
        }
        rest = next;
    }
    (names, text.len() - rest.len())
}

/// Reads one name. `strict` asks for a family name, because nothing else shows that it is one.
fn name(text: &str, strict: bool) -> Option<(String, usize)> {
    let run: Vec<char> = text.chars().take_while(|c| is_han(*c)).take(12).collect();
    if run.is_empty() {
        return if strict { None } else { latin(text) };
    }
    let bytes = |count: usize| run[..count].iter().map(|c| c.len_utf8()).sum::<usize>();
    let plain: String = run.iter().collect();
    // `蒋 凌`: a name of two characters is set as wide as one of three.
    if run.len() == 1 {
        let rest = &text[bytes(1)..];
        let second = rest.trim_start_matches(is_gap);
        let given: Vec<char> = second.chars().take_while(|c| is_han(*c)).take(3).collect();
        let spaced = rest.len() > second.len() && given.len() == 1 && FAMILY.contains(run[0]);
        let length = text.len() - second.len() + given.first().map_or(0, |c| c.len_utf8());
        return spaced.then(|| (format!("{}{}", run[0], given[0]), length));
    }
    if NO_NAMES.iter().any(|none| plain.starts_with(none)) {
        return None;
    }
    let double = DOUBLE.iter().any(|family| plain.starts_with(family));
    let known = double || FAMILY.contains(run[0]);
    let longest = if double { 4 } else { 3 };
    if run.len() <= longest && (known || !strict) || !strict && run.len() <= 4 {
        let office = OFFICES.iter().any(|office| plain.ends_with(office)) && !known;
        let verb = run.last().is_some_and(|c| matches!(c, '摄' | '攝' | '报' | '報' | '编' | '編'));
        let length = if verb && run.len() > 2 { run.len() - 1 } else { run.len() };
        return (!office).then(|| (run[..length].iter().collect(), bytes(length)));
    }
    if !known {
        return None;
    }
    // A longer run: the name ends where a report is mentioned.
    let report =
        ["报道", "報導", "报导", "報道", "摄影", "攝影", "撰", "采写", "综合", "綜合", "摄"];
    let at = report.iter().filter_map(|word| plain.find(word)).min()?;
    let before = plain[..at].chars().count();
    // Between the name and the report there may be a place of two characters: 潘姿羽台北報導.
    let length = match before {
        2 | 3 => before,
        4 => 2,
        5..=7 => 3,
        _ => return None,
    };
    Some((run[..length].iter().collect(), bytes(length)))
}

/// A pen name in Latin letters; identifiers with digits are no names.
fn latin(text: &str) -> Option<(String, usize)> {
    let end = text.find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '·')));
    let name = &text[..end.unwrap_or(text.len())];
    let name = name.trim_end_matches(['.', '-', '_', '·']);
    let letters = name.chars().filter(|c| c.is_alphabetic()).count();
    let fits = (2..=20).contains(&name.chars().count())
        && letters > 1
        && letters * 2 > name.chars().count()
        && !name.starts_with("http")
        && !name.starts_with("www")
        && !is_code(name);
    fits.then(|| (name.to_owned(), name.len()))
}

/// `NF075`, `SN034`: numbers of editors.
fn is_code(name: &str) -> bool {
    name.ends_with(|c: char| c.is_ascii_digit())
        && name.starts_with(|c: char| c.is_ascii_uppercase())
}

/// Reads a name in brackets at the end of a text: `（张慧玲）`, `(新民网 李欣)`, `(李军伟 编译)`.
pub(super) fn signed(text: &str) -> Option<Byline> {
    let text = text.trim_end().strip_suffix([')', '）'])?;
    let start = text.rfind(['(', '（'])?;
    let inner = text[start..].trim_start_matches(['(', '（']).trim();
    if inner.chars().count() > 16 {
        return None;
    }
    let words: Vec<&str> = inner.split(is_gap).filter(|word| !word.is_empty()).collect();
    let role = |word: &str| matches!(word, "编译" | "編譯" | "编辑" | "編輯" | "翻译" | "完");
    let (words, part) = match words.split_last() {
        Some((last, rest)) if role(last) && !rest.is_empty() => {
            (rest, if last.ends_with(['译', '譯']) { Credit::Compiler } else { Credit::Editor })
        }
        _ => (&words[..], Credit::Signed),
    };
    let last = words.last()?;
    let (name, length) = name(last, true)?;
    // A single word must be as short as names are.
    let whole = length == last.len() && words.len() <= 2;
    whole.then(|| Byline { part, names: vec![name] })
}

/// Reads a whole line that names a reporter: `蔡崇梧 報導`, `希望之聲國際廣播電台張翠報導`,
/// `記者孫慶璋／嘉義報導`.
pub(super) fn reported(line: &str) -> Option<Byline> {
    let line = line.trim().trim_end_matches(['。', '.', '】', '〕', ']', '）', ')']).trim_end();
    if line.chars().count() > 40 {
        return None;
    }
    let report = ["採訪報導", "采访报道", "綜合報導", "报道", "報導", "报导", "報道"];
    let before = report.iter().find_map(|word| line.strip_suffix(word))?.trim_end();
    // After the name of a broadcaster, or alone.
    let office = ["電台", "电台", "電視", "电视", "網", "网", "社", "報", "报"];
    let after = office.iter().filter_map(|word| before.rfind(word).map(|at| at + word.len())).max();
    let rest = before[after.unwrap_or(0)..].trim();
    let mut names = Vec::new();
    for word in rest.split(['、', ' ', '\u{3000}', ',', '，']) {
        let run: Vec<char> = word.chars().collect();
        let known = run.first().is_some_and(|first| FAMILY.contains(*first));
        match run.len() {
            2 | 3 if known && run.iter().all(|c| is_han(*c)) => names.push(word.to_owned()),
            // A place follows the last name.
            5..=7 if known && run.iter().all(|c| is_han(*c)) => {
                names.push(run[..3].iter().collect());
            }
            _ => return None,
        }
    }
    (!names.is_empty()).then_some(Byline { part: Credit::Reporter, names })
}
