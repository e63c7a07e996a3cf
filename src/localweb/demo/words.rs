//! Sentences from word lists: plain, distinct, and the same for the same seed.

/// A seeded stream of words.
///
/// Source: the `SplitMix64` generator, Steele, Lea, Flood, OOPSLA 2014.
pub(super) struct WordStream(u64);

const NOUNS: [&str; 60] = [
    "harbour",
    "orchard",
    "lantern",
    "compass",
    "meadow",
    "turbine",
    "ledger",
    "glacier",
    "anvil",
    "pottery",
    "cathedral",
    "railway",
    "sparrow",
    "lagoon",
    "almanac",
    "furnace",
    "quarry",
    "vineyard",
    "beacon",
    "mosaic",
    "caravan",
    "theatre",
    "citadel",
    "plateau",
    "estuary",
    "bakery",
    "archive",
    "parliament",
    "telescope",
    "harvest",
    "museum",
    "ferry",
    "workshop",
    "library",
    "market",
    "bridge",
    "garden",
    "tower",
    "village",
    "island",
    "factory",
    "school",
    "forest",
    "valley",
    "river",
    "station",
    "festival",
    "council",
    "painter",
    "engineer",
    "doctor",
    "farmer",
    "sailor",
    "teacher",
    "baker",
    "mason",
    "pilot",
    "weaver",
    "smith",
    "clerk",
];
const VERBS: [&str; 40] = [
    "opened",
    "measured",
    "repaired",
    "painted",
    "visited",
    "described",
    "counted",
    "moved",
    "planted",
    "sold",
    "bought",
    "defended",
    "copied",
    "restored",
    "guarded",
    "crossed",
    "mapped",
    "praised",
    "doubted",
    "followed",
    "founded",
    "closed",
    "lost",
    "found",
    "carried",
    "lit",
    "cleaned",
    "named",
    "studied",
    "drew",
    "weighed",
    "rented",
    "shared",
    "photographed",
    "sealed",
    "lifted",
    "covered",
    "warned",
    "honoured",
    "remembered",
];
const ADJECTIVES: [&str; 40] = [
    "old", "quiet", "granite", "velvet", "narrow", "bright", "distant", "crowded", "empty",
    "northern", "southern", "wooden", "iron", "hidden", "famous", "modest", "curious", "patient",
    "stormy", "silver", "green", "broken", "ancient", "busy", "cold", "warm", "generous", "strict",
    "gentle", "proud", "rusty", "spare", "shallow", "deep", "round", "steep", "foggy", "sunny",
    "humble", "grand",
];
const TIMES: [&str; 16] = [
    "before dawn",
    "last winter",
    "on Monday",
    "after the storm",
    "during the fair",
    "in early spring",
    "for a week",
    "without notice",
    "at noon",
    "every evening",
    "since the flood",
    "under heavy rain",
    "with great care",
    "against all advice",
    "for the first time",
    "once again",
];
const SUBJECTS: [&str; 24] = [
    "市政府",
    "研究人员",
    "当地农民",
    "铁路公司",
    "博物馆",
    "气象部门",
    "渔民协会",
    "图书馆",
    "天文学家",
    "工程师们",
    "医院",
    "大学",
    "航运企业",
    "环保组织",
    "消防队",
    "古籍专家",
    "登山队",
    "志愿者",
    "邮政局",
    "水利部门",
    "茶农",
    "船厂",
    "电视台",
    "博览会组委会",
];
const ACTIONS: [&str; 24] = [
    "宣布",
    "计划",
    "重新修复了",
    "仔细测量了",
    "公开展示了",
    "开始建设",
    "调查了",
    "保护着",
    "记录了",
    "发现了",
    "讨论了",
    "推迟了",
    "完成了",
    "改造了",
    "捐赠了",
    "检验了",
    "出版了",
    "绘制了",
    "种植了",
    "运送了",
    "拍摄了",
    "命名了",
    "清理了",
    "比较了",
];
const OBJECTS: [&str; 24] = [
    "一座古老的石桥",
    "沿海的防波堤",
    "新的望远镜",
    "山谷里的果园",
    "十九世纪的地图",
    "港口仓库",
    "高速铁路支线",
    "湿地公园",
    "失传的手稿",
    "城北的水厂",
    "青铜器藏品",
    "风力发电机组",
    "山顶观测站",
    "老城区的街道",
    "远洋货轮",
    "地下排水系统",
    "陶瓷作坊",
    "野生候鸟栖息地",
    "冬季供暖方案",
    "乡村小学",
    "灯塔",
    "运河码头",
    "茶叶市场",
    "森林防火道",
];
const CHINESE_TIMES: [&str; 16] = [
    "上周末，",
    "经过三年准备，",
    "在暴雨之后，",
    "据记者了解，",
    "今年春天，",
    "昨天上午，",
    "与往年不同，",
    "专家指出，",
    "在居民的支持下，",
    "由于资金不足，",
    "节日期间，",
    "从本月起，",
    "面对质疑，",
    "按照协议，",
    "首次公开，",
    "历时半年，",
];

fn mixed(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
}

impl WordStream {
    pub(super) fn new(seed: u64) -> Self {
        // Not a multiple of the step of the generator, or streams would be shifts of each other.
        Self(mixed(seed ^ 0x5DEE_CE66_D1CE_4E5B))
    }

    fn pick<'a>(&mut self, list: &[&'a str]) -> &'a str {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        list[(mixed(self.0) % list.len() as u64) as usize]
    }

    /// A title of four words or so.
    pub(super) fn title(&mut self) -> String {
        let (adjective, noun) = (self.pick(&ADJECTIVES), self.pick(&NOUNS));
        let (verb, other) = (self.pick(&VERBS), self.pick(&NOUNS));
        format!("How the {adjective} {noun} {verb} the {other}")
    }

    /// Sentences of at least `words` words in all.
    pub(super) fn paragraph(&mut self, words: usize) -> String {
        let mut text = String::new();
        while text.split(' ').count() < words {
            let sentence = format!(
                "The {} {} {} the {} {} {}, and the {} {} {} the {}.",
                self.pick(&ADJECTIVES),
                self.pick(&NOUNS),
                self.pick(&VERBS),
                self.pick(&ADJECTIVES),
                self.pick(&NOUNS),
                self.pick(&TIMES),
                self.pick(&ADJECTIVES),
                self.pick(&NOUNS),
                self.pick(&VERBS),
                self.pick(&NOUNS),
            );
            if !text.is_empty() {
                text.push(' ');
            }
            text.push_str(&sentence);
        }
        text
    }

    /// A Chinese title.
    pub(super) fn chinese_title(&mut self) -> String {
        format!("{}{}{}", self.pick(&SUBJECTS), self.pick(&ACTIONS), self.pick(&OBJECTS))
    }

    /// Chinese sentences, about 35 characters each.
    pub(super) fn chinese_paragraph(&mut self, sentences: usize) -> String {
        let mut text = String::new();
        for _ in 0..sentences {
            text.push_str(self.pick(&CHINESE_TIMES));
            text.push_str(&self.chinese_title());
            text.push_str("，随后");
            text.push_str(&self.chinese_title());
            text.push('。');
        }
        text
    }
}
