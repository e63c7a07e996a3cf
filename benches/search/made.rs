//! Articles that nobody wrote, and edited ones of them: the data of the experiments.
//!
//! Fourteen subjects with words of their own; an article has some of them again and again, with
//! names, places and figures that few others have. What is asked is a quarter of it edited: cut out,
//! put in from others, or replaced by others, at the beginning, in the middle and at the end.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use serde_json::json;

/// How much of a text is edited, in percent.
const EDITED: usize = 25;

/// Subjects: their things, and what is done with them.
const SUBJECTS: [(&str, &str); 14] = [
    (
        "银行 利率 贷款 存款 外汇 通胀 债券 央行 税收 预算 信用卡 货币",
        "下调 上调 发放 收紧 放宽 核算",
    ),
    (
        "股票 大盘 指数 股东 年报 分红 增持 基金 券商 板块 市值 散户",
        "上涨 下跌 收盘 减持 回购 停牌",
    ),
    (
        "楼盘 房价 开发商 业主 物业 地铁 户型 土地 首付 租金 装修 小区",
        "开盘 成交 交付 限购 拍卖 退房",
    ),
    (
        "高考 考生 志愿 录取 教师 课程 学费 论文 校园 奖学金 留学 教材",
        "公布 报名 改革 批改 推荐 辅导",
    ),
    (
        "芯片 手机 网络 软件 卫星 电池 屏幕 算法 机器人 专利 宽带 数据",
        "发布 升级 研发 测试 量产 兼容",
    ),
    (
        "居民 警方 法院 医院 火灾 车祸 救援 志愿者 证人 失主 天气 路口",
        "调查 救出 起诉 赔偿 通报 逃逸",
    ),
    (
        "外长 会谈 条约 使馆 议会 选举 边境 制裁 峰会 代表团 宪法 停火",
        "访问 谴责 签署 投票 磋商 抗议",
    ),
    (
        "球队 教练 联赛 进球 裁判 冠军 球迷 主场 门将 伤病 转会 赛季",
        "战胜 击败 扳平 晋级 换下 罚下",
    ),
    (
        "导演 电影 票房 演员 剧本 专辑 歌手 颁奖 粉丝 首映 剧组 综艺",
        "主演 拍摄 上映 获奖 翻唱 澄清",
    ),
    (
        "时装 模特 面料 设计师 香水 发型 秀场 配饰 妆容 裙摆 品牌 杂志",
        "搭配 亮相 剪裁 代言 流行 展示",
    ),
    (
        "玩家 副本 装备 服务器 公测 角色 任务 公会 地图 补丁 战队 道具",
        "上线 掉落 合服 封号 通关 更新",
    ),
    (
        "白羊座 金牛座 双子座 狮子座 天秤座 天蝎座 运势 缘分 桃花 性格 星盘 伴侣",
        "预示 影响 犹豫 改善 错过 提醒",
    ),
    (
        "沙发 橱柜 地板 涂料 灯具 卧室 阳台 瓷砖 窗帘 收纳 甲醛 家具",
        "铺设 选购 安装 保养 检测 翻新",
    ),
    (
        "彩民 双色球 大奖 奖池 号码 彩票站 注数 头奖 公益金 投注 开奖 倍投",
        "中出 领奖 兑付 累积 守号 派送",
    ),
];

const PLACES: &str = "北京 上海 广州 深圳 杭州 南京 武汉 成都 重庆 西安 天津 沈阳 大连 青岛 济南 郑州 长沙 \
    合肥 福州 厦门 昆明 贵阳 南宁 海口 兰州 银川 西宁 太原 石家庄 哈尔滨 长春 苏州 无锡 宁波 温州 佛山 东莞 珠海 洛阳 开封";
const URL_PATTERNS: &str = "王李张刘陈杨赵黄周吴徐孙胡朱高林何郭马罗梁宋郑谢韩唐冯于董萧程曹袁邓许傅沈曾彭吕苏卢蒋蔡贾丁魏薛叶阎";
const GIVEN: &str = "伟芳娜敏静丽强磊军洋勇艳杰娟涛明超秀霞平刚桂英华玉兰红建国文辉力志远思源晓东海燕雪梅春宁波浩宇轩涵子睿嘉诚振邦\
    立新学良冬青立群书恒一鸣清和卓然景行若水";
const BODIES: &str = "集团 公司 大学 研究所 委员会 协会 管理局 出版社 实验室 俱乐部 交易所 基金会";
const MARKS: &str =
    "恒 信 达 华 泰 通 源 盛 联 合 远 东 新 科 瑞 丰 金 鼎 汇 博 天 宏 利 正 鑫 德 润 凯 威 中";
const TIMES: &str =
    "昨天 今天上午 本周 上周末 日前 近日 当晚 去年 今年以来 本月初 凌晨 周三下午 年底前 未来三年";
const HOW: &str = "正式 再次 首次 突然 明显 陆续 联合 共同 悄然 仍然 已经 继续 顺利 一度 同步 全面";
const JOINTS: &str = "不过 此外 与此同时 据介绍 据了解 另一方面 值得注意的是 事实上 对此 总体来看";
const QUALITIES: &str =
    "新的 最大的 传统的 关键的 不少 部分 多数 相关的 当地的 唯一的 老旧的 高端的";

/// Numbers that look like chance, the same each time.
struct Chance(u64);

impl Chance {
    fn below(&mut self, most: usize) -> usize {
        // xorshift64*
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        ((u128::from(self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)) * most as u128) >> 64) as usize
    }

    fn between(&mut self, least: usize, most: usize) -> usize {
        least + self.below(most - least + 1)
    }

    fn one<'a>(&mut self, words: &'a str) -> &'a str {
        let count = words.split_whitespace().count();
        words.split_whitespace().nth(self.below(count)).unwrap()
    }

    fn letter(&mut self, letters: &str) -> char {
        letters.chars().nth(self.below(letters.chars().count())).unwrap()
    }

    fn person(&mut self) -> String {
        let second = if self.below(4) == 0 { None } else { Some(self.letter(GIVEN)) };
        [self.letter(URL_PATTERNS), self.letter(GIVEN)].into_iter().chain(second).collect()
    }

    fn body(&mut self) -> String {
        let marks = [self.one(MARKS), self.one(MARKS)].concat();
        format!("{}{marks}{}", self.one(PLACES), self.one(BODIES))
    }

    fn figure(&mut self) -> String {
        let unit = ["万元", "人", "个百分点", "公里", "年", "次", "亿元", "名", "%"][self.below(9)];
        match self.below(3) {
            0 => format!("{}.{}{unit}", self.between(1, 99), self.below(10)),
            _ => format!("{}{unit}", self.between(2, 3_000)),
        }
    }
}

/// What an article is about: words that come back in it.
struct Topic {
    things: Vec<&'static str>,
    deeds: &'static str,
    people: Vec<String>,
    bodies: Vec<String>,
    place: &'static str,
}

impl Topic {
    fn new(chance: &mut Chance) -> Self {
        let (things, deeds) = SUBJECTS[chance.below(SUBJECTS.len())];
        let things = (0..chance.between(4, 7)).map(|_| chance.one(things)).collect();
        let people = (0..chance.between(1, 3)).map(|_| chance.person()).collect();
        let bodies = (0..chance.between(1, 2)).map(|_| chance.body()).collect();
        Self { things, deeds, people, bodies, place: chance.one(PLACES) }
    }

    fn sentence(&self, chance: &mut Chance) -> String {
        let thing = |chance: &mut Chance| self.things[chance.below(self.things.len())];
        let deed = |chance: &mut Chance| chance.one(self.deeds).to_owned();
        let person = self.people[chance.below(self.people.len())].clone();
        let body = self.bodies[chance.below(self.bodies.len())].clone();
        let (time, how, quality) = (chance.one(TIMES), chance.one(HOW), chance.one(QUALITIES));
        let (one, two, three) = (thing(chance), thing(chance), thing(chance));
        let (deed, other) = (deed(chance), deed(chance));
        let (figure, place) = (chance.figure(), self.place);
        let begin =
            if chance.below(3) == 0 { format!("{}，", chance.one(JOINTS)) } else { String::new() };
        let clause = match chance.below(12) {
            0 => format!("{time}{body}{how}{deed}{quality}{one}，涉及{two}{figure}"),
            1 => format!("{person}表示，{place}的{one}{how}{deed}，{two}也会{other}"),
            2 => format!("{body}负责人{person}在{place}谈到{one}与{two}时说，{three}{figure}"),
            3 => format!("{quality}{one}{time}{how}{deed}，比{two}多出{figure}"),
            4 => format!("由于{one}{deed}，{place}{quality}{two}不得不{other}"),
            5 => format!("{person}认为{one}的问题在于{two}，而不是{three}"),
            6 => format!("{time}，{place}有{figure}与{one}有关，其中{quality}{two}{how}{deed}"),
            7 => format!("记者从{body}获悉，{one}{how}{deed}后，{two}将{other}{figure}"),
            8 => format!("一位不愿透露姓名的人士说，{person}{time}{how}{deed}了{one}"),
            9 => format!("{body}的数据显示，{one}达到{figure}，{two}为{}", chance.figure()),
            10 => format!(
                "{person}和{}都关注{one}，前者{deed}{two}，后者{other}{three}",
                chance.person()
            ),
            _ => format!("在{place}，{quality}{one}{how}{deed}，{body}对{two}{other}"),
        };
        format!("{begin}{clause}。")
    }

    fn text(&self, chance: &mut Chance) -> String {
        let (mut text, long) = (String::new(), chance.between(200, 1_200));
        let mut count = 0;
        while count < long {
            let sentence = self.sentence(chance);
            count += sentence.chars().count();
            text += &sentence;
            if chance.below(4) == 0 {
                text.push('\n');
            }
        }
        text
    }
}

/// Edits a quarter of a text. What is put in comes from `others`.
fn edited(text: &str, others: &[String], chance: &mut Chance) -> String {
    let mut letters: Vec<char> = text.chars().collect();
    let whole = letters.len();
    let mut left = (whole * EDITED).div_ceil(100).max(1);
    while left > 0 {
        let run = chance.between(1, left.min(40)).min(letters.len() / 3).max(1);
        left -= run.min(left);
        // At the beginning, in the middle, or at the end.
        let room = letters.len() - run;
        let at = match chance.below(3) {
            0 => chance.below(room / 5 + 1),
            1 => room / 3 + chance.below(room / 3 + 1),
            _ => room - chance.below(room / 5 + 1),
        };
        let other: Vec<char> = others[chance.below(others.len())].chars().collect();
        let from = chance.below(other.len().saturating_sub(run) + 1);
        let piece = other.into_iter().skip(from).take(run);
        match chance.below(3) {
            0 => drop(letters.drain(at..at + run)),
            1 => drop(letters.splice(at..at, piece)),
            _ => drop(letters.splice(at..at + run, piece)),
        }
    }
    letters.into_iter().collect()
}

/// Writes a corpus, questions and their answers into a folder.
pub(crate) fn write(
    folder: &Path,
    (documents, queries, asked): (usize, usize, usize),
    sentences: fn(&str) -> Vec<&str>,
) {
    std::fs::create_dir_all(folder).unwrap();
    let file = |name: &str| BufWriter::new(File::create(folder.join(name)).unwrap());
    let mut chance = Chance(0x9E37_79B9_7F4A_7C15);
    let texts: Vec<String> =
        (0..documents).map(|_| Topic::new(&mut chance).text(&mut chance)).collect();
    let mut corpus = file("corpus.jsonl");
    let mut holders: HashMap<&str, Vec<usize>> = HashMap::new();
    for (number, text) in texts.iter().enumerate() {
        writeln!(corpus, "{}", json!({"id": format!("d{number}"), "text": text})).unwrap();
        for sentence in sentences(text) {
            let held = holders.entry(sentence).or_default();
            if held.last() != Some(&number) {
                held.push(number);
            }
        }
    }
    let mut ask = |kind: &str,
                   count: usize,
                   pick: &mut dyn FnMut(&mut Chance) -> (String, Vec<usize>)| {
        let (mut questions, mut truth) =
            (file(&format!("queries_{kind}.jsonl")), file(&format!("truth_{kind}.tsv")));
        writeln!(truth, "query\torigin\tright").unwrap();
        for number in 0..count {
            let (text, right) = pick(&mut chance);
            let right: Vec<String> = right.iter().map(|one| format!("d{one}")).collect();
            writeln!(questions, "{}", json!({"qid": format!("q{number}"), "text": text})).unwrap();
            writeln!(truth, "q{number}\t{}\t{}", right[0], right.join(",")).unwrap();
        }
    };
    ask("docs", queries, &mut |chance| {
        let number = chance.below(texts.len());
        (edited(&texts[number], &texts, chance), vec![number])
    });
    ask("sents", asked, &mut |chance| loop {
        let all = sentences(&texts[chance.below(texts.len())]);
        let sentence = all[chance.below(all.len())];
        if sentence.chars().count() >= 12 {
            return (edited(sentence, &texts, chance), holders[sentence].clone());
        }
    });
}
