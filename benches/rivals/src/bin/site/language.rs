//! Words and sentence patterns of a language, and a seeded writer of sentences.

/// The lists from which texts are made. Patterns are tokens with a blank between; a token of one
/// capital letter is a place for a word, which [`Writer::word`] names.
pub struct Language {
    /// Its code, as in `lang="en"`.
    pub code: &'static str,
    /// What stands between two words.
    pub between: &'static str,
    /// What ends a sentence.
    pub full_stop: &'static str,
    /// Words before the first comma of a sentence.
    pub openings: &'static str,
    /// Sentences without opening and end, one a line.
    pub clauses: &'static str,
    /// Words between two clauses.
    pub links: &'static str,
    /// Titles, one a line.
    pub titles: &'static str,
    pub nouns: &'static str,
    pub things: &'static str,
    pub adjectives: &'static str,
    pub verbs: &'static str,
    pub adverbs: &'static str,
    pub first_names: &'static str,
    /// Beginnings and ends of surnames and of places.
    pub name_starts: &'static str,
    pub name_ends: &'static str,
    pub place_ends: &'static str,
    pub bodies: &'static str,
    pub months: &'static str,
    /// What the frame of a page says: words of the menu.
    pub menu: &'static str,
    /// Names of the sites.
    pub sites: &'static str,
    /// Names of series of pages that share a notice.
    pub series: &'static str,
    pub related: &'static str,
    pub most_read: &'static str,
    pub appeal: &'static str,
    pub rights: &'static str,
}

/// A generator (splitmix64).
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0xA076_1D64_78BD_642F))
    }

    pub fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ (mixed >> 31)) % bound as u64) as usize
    }

    /// True for so many in a hundred.
    pub fn percent(&mut self, share: usize) -> bool {
        self.below(100) < share
    }

    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        (1..items.len()).for_each(|last| items.swap(last, self.below(last + 1)));
    }
}

/// The lists of a language, parted once.
struct Lists {
    openings: Vec<&'static str>,
    clauses: Vec<&'static str>,
    links: Vec<&'static str>,
    titles: Vec<&'static str>,
    nouns: Vec<&'static str>,
    things: Vec<&'static str>,
    adjectives: Vec<&'static str>,
    verbs: Vec<&'static str>,
    adverbs: Vec<&'static str>,
    first_names: Vec<&'static str>,
    name_starts: Vec<&'static str>,
    name_ends: Vec<&'static str>,
    place_ends: Vec<&'static str>,
    bodies: Vec<&'static str>,
    months: Vec<&'static str>,
}

/// A language that can be written in.
pub struct Vocabulary {
    pub language: &'static Language,
    lists: Lists,
}

impl Vocabulary {
    pub fn new(language: &'static Language) -> Self {
        let words = |text: &'static str| text.split_whitespace().collect();
        let lines = |text: &'static str| text.trim().lines().map(str::trim).collect();
        let lists = Lists {
            openings: lines(language.openings),
            clauses: lines(language.clauses),
            links: lines(language.links),
            titles: lines(language.titles),
            nouns: words(language.nouns),
            things: words(language.things),
            adjectives: words(language.adjectives),
            verbs: words(language.verbs),
            adverbs: words(language.adverbs),
            first_names: words(language.first_names),
            name_starts: words(language.name_starts),
            name_ends: words(language.name_ends),
            place_ends: words(language.place_ends),
            bodies: lines(language.bodies),
            months: words(language.months),
        };
        Self { language, lists }
    }
}

/// Words and punctuation of one sentence.
pub type Sentence = Vec<String>;

/// Nouns, people and places that an article comes back to.
const TOPIC_NOUNS: usize = 24;
const TOPIC_PEOPLE: usize = 6;
const TOPIC_PLACES: usize = 4;

/// Writes about one topic.
pub struct Writer<'a> {
    vocabulary: &'a Vocabulary,
    pub random: Random,
    nouns: Vec<&'static str>,
    people: Vec<String>,
    places: Vec<String>,
}

impl<'a> Writer<'a> {
    pub fn new(vocabulary: &'a Vocabulary, seed: u64) -> Self {
        let mut writer = Self {
            vocabulary,
            random: Random::new(seed),
            nouns: Vec::new(),
            people: Vec::new(),
            places: Vec::new(),
        };
        for _ in 0..TOPIC_NOUNS {
            let noun = writer.one(&vocabulary.lists.nouns);
            writer.nouns.push(noun);
        }
        for _ in 0..TOPIC_PEOPLE {
            let person = writer.person();
            writer.people.push(person);
        }
        for _ in 0..TOPIC_PLACES {
            let place = writer.place();
            writer.places.push(place);
        }
        writer
    }

    fn one(&mut self, list: &[&'static str]) -> &'static str {
        list[self.random.below(list.len())]
    }

    /// The given name stands before the surname, but not in Chinese.
    fn person(&mut self) -> String {
        let lists = &self.vocabulary.lists;
        let first = self.one(&lists.first_names);
        let (start, end) = (self.one(&lists.name_starts), self.one(&lists.name_ends));
        match self.vocabulary.language.code {
            "zh" => format!("{first}{end}"),
            _ => format!("{first} {start}{end}"),
        }
    }

    fn place(&mut self) -> String {
        let lists = &self.vocabulary.lists;
        format!("{}{}", self.one(&lists.name_starts), self.one(&lists.place_ends))
    }

    /// The word of a place in a pattern: A adjective, N noun, M thing that cannot be counted, V
    /// verb, R adverb, P place, H person, B body such as an office, Y month, D number.
    fn word(&mut self, kind: char) -> String {
        let lists = &self.vocabulary.lists;
        let usual = self.random.percent(60);
        match kind {
            'A' => self.one(&lists.adjectives).to_owned(),
            'N' if usual => self.nouns[self.random.below(TOPIC_NOUNS)].to_owned(),
            'N' => self.one(&lists.nouns).to_owned(),
            'M' => self.one(&lists.things).to_owned(),
            'V' => self.one(&lists.verbs).to_owned(),
            'R' => self.one(&lists.adverbs).to_owned(),
            'P' if usual => self.places[self.random.below(TOPIC_PLACES)].clone(),
            'P' => self.place(),
            'H' if usual => self.people[self.random.below(TOPIC_PEOPLE)].clone(),
            'H' => self.person(),
            'B' => self.one(&lists.bodies).to_owned(),
            'Y' => self.one(&lists.months).to_owned(),
            'D' => (2 + self.random.below(970)).to_string(),
            _ => kind.to_string(),
        }
    }

    /// Any word that tells something, for edits.
    pub fn foreign_word(&mut self) -> String {
        let kind = ['A', 'N', 'M', 'V', 'R'][self.random.below(5)];
        self.word(kind)
    }

    fn filled(&mut self, pattern: &str, sentence: &mut Sentence) {
        for token in pattern.split(' ') {
            let mut letters = token.chars();
            match (letters.next(), letters.next()) {
                (Some('s'), None) => {
                    let noun = sentence.pop().unwrap_or_default();
                    sentence.push(plural(&noun));
                }
                (Some(kind), None) if kind.is_ascii_uppercase() => {
                    let words = self.word(kind);
                    sentence.extend(words.split(' ').map(str::to_owned));
                }
                _ => sentence.push(token.to_owned()),
            }
        }
    }

    pub fn sentence(&mut self) -> Sentence {
        let lists = &self.vocabulary.lists;
        let mut sentence = Sentence::new();
        if self.random.percent(35) {
            let opening = self.one(&lists.openings);
            self.filled(opening, &mut sentence);
        }
        let clause = self.one(&lists.clauses);
        self.filled(clause, &mut sentence);
        if self.random.percent(45) {
            let link = self.one(&lists.links);
            self.filled(link, &mut sentence);
            let clause = self.one(&lists.clauses);
            self.filled(clause, &mut sentence);
        }
        sentence.push(self.vocabulary.language.full_stop.to_owned());
        sentence
    }

    pub fn paragraph(&mut self) -> Vec<Sentence> {
        let count = 3 + self.random.below(4);
        (0..count).map(|_| self.sentence()).collect()
    }

    pub fn title(&mut self) -> String {
        let mut words = Sentence::new();
        let pattern = self.one(&self.vocabulary.lists.titles);
        self.filled(pattern, &mut words);
        joined(self.vocabulary.language, &words)
    }

    /// Who wrote it, and when.
    pub fn byline(&mut self) -> String {
        let (day, person) = (1 + self.random.below(28), self.person());
        let month = self.word('Y');
        match self.vocabulary.language.code {
            "zh" => format!("2026年{month}{day}日 记者 {person}"),
            _ => format!("By {person}, {day} {month} 2026"),
        }
    }
}

/// Many of an English noun.
fn plural(noun: &str) -> String {
    let vowel_before = noun.ends_with("ey") || noun.ends_with("ay");
    match noun.strip_suffix('y') {
        Some(start) if !vowel_before => format!("{start}ies"),
        _ if noun.ends_with("ch") || noun.ends_with("sh") || noun.ends_with(['s', 'x']) => {
            format!("{noun}es")
        }
        _ => format!("{noun}s"),
    }
}

/// The words as they are written: punctuation at the word before, `an` before a vowel, the first
/// letter large.
pub fn joined(language: &Language, words: &[String]) -> String {
    let mut text = String::new();
    for (at, word) in words.iter().enumerate() {
        let punctuation = word.chars().all(|letter| ",.;:，。；：".contains(letter));
        if at > 0 && !punctuation {
            text.push_str(language.between);
        }
        let vowel = words.get(at + 1).is_some_and(|next| {
            next.starts_with(['a', 'e', 'i', 'o', 'u']) && !next.starts_with("use")
        });
        match word.as_str() {
            "a" if vowel => text.push_str("an"),
            word if at == 0 => {
                let mut letters = word.chars();
                text.extend(letters.next().into_iter().flat_map(char::to_uppercase));
                text.push_str(letters.as_str());
            }
            word => text.push_str(word),
        }
    }
    text
}
