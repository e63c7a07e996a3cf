//! Which documents are exported: a small expression over their fields.
//!
//! ```text
//! expression = and-part { "or" and-part }
//! and-part   = not-part { "and" not-part }
//! not-part   = [ "not" ] ( "(" expression ")" | test )
//! test       = field operator value | field [ "not" ] "in" "(" value { "," value } ")"
//! operator   = "=" | "!=" | "<" | "<=" | ">" | ">=" | "like" | "not like"
//! value      = word | 'text' | "text"
//! ```
//!
//! A date is a span of time: `published <= 2026-11` takes in all of November. A test of a value
//! that is not known fails, so that `not` before it holds.

use std::fmt;
use std::str::FromStr;

use super::field::{FIELDS, Field, Needs, Subject};
use super::time::Span;
use super::value::{Kind, Value};

/// Parentheses and `not` that may stand in each other.
const DEPTH_MAX: usize = 50;

/// What is wrong with an expression, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpressionError {
    text: String,
    /// Byte of the text.
    at: usize,
    detail: String,
}

impl std::error::Error for ExpressionError {}

impl fmt::Display for ExpressionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let column = self.text[..self.at].chars().count();
        let shown: String =
            self.text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        write!(
            f,
            "at character {}: {}\n  {shown}\n  {}^",
            column + 1,
            self.detail,
            " ".repeat(column)
        )
    }
}

/// An expression that was read.
#[derive(Debug, Clone)]
pub struct Expression {
    text: String,
    root: Node,
    pub(super) needs: Needs,
    pub(super) fields: Vec<&'static Field>,
}

#[derive(Debug, Clone, PartialEq)]
enum Node {
    Or(Vec<Node>),
    And(Vec<Node>),
    Not(Box<Node>),
    Test(&'static Field, Test),
}

#[derive(Debug, Clone, PartialEq)]
enum Test {
    Compare(Operator, Operand),
    OneOf(Vec<Operand>),
    /// Parts of a text between its stars, in lower case.
    Like(Vec<String>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Equal,
    Less,
    LessOrEqual,
    More,
    MoreOrEqual,
}

#[derive(Debug, Clone, PartialEq)]
enum Operand {
    Text(String),
    Number(f64),
    Flag(bool),
    Span(Span),
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl PartialEq for Expression {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Expression {}

impl Expression {
    /// Tells whether a document is taken.
    pub(super) fn takes(&self, subject: &Subject<'_>) -> bool {
        self.root.holds(&mut |field| (field.of)(subject))
    }
}

impl Node {
    fn holds(&self, value: &mut impl FnMut(&Field) -> Value) -> bool {
        match self {
            Self::Or(parts) => parts.iter().any(|part| part.holds(value)),
            Self::And(parts) => parts.iter().all(|part| part.holds(value)),
            Self::Not(part) => !part.holds(value),
            Self::Test(field, test) => test.holds(field.column.kind, &value(field)),
        }
    }
}

impl Test {
    fn holds(&self, kind: Kind, value: &Value) -> bool {
        match self {
            Self::Compare(operator, operand) => operand.compare(*operator, kind, value),
            Self::OneOf(list) => {
                list.iter().any(|operand| operand.compare(Operator::Equal, kind, value))
            }
            Self::Like(parts) => value.as_text().is_some_and(|text| is_like(text, parts)),
        }
    }
}

impl Operator {
    fn holds<T: PartialOrd + ?Sized>(self, one: &T, other: &T) -> bool {
        match self {
            Self::Equal => one == other,
            Self::Less => one < other,
            Self::LessOrEqual => one <= other,
            Self::More => one > other,
            Self::MoreOrEqual => one >= other,
        }
    }
}

impl Operand {
    fn compare(&self, operator: Operator, kind: Kind, value: &Value) -> bool {
        match (self, value) {
            (Self::Number(number), Value::Count(count)) => operator.holds(&(*count as f64), number),
            (Self::Number(number), Value::Number(value)) => operator.holds(value, number),
            (Self::Flag(flag), Value::Flag(value)) => operator.holds(value, flag),
            (Self::Span(span), Value::Time(time)) => span.compare(operator.into(), *time),
            (Self::Span(span), Value::Text(date)) if kind == Kind::Date => {
                Span::read(date).is_some_and(|date| span.compare(operator.into(), date.from))
            }
            (Self::Text(text), Value::Text(value)) => operator.holds(value.as_str(), text.as_str()),
            _ => false,
        }
    }
}

impl From<Operator> for super::time::Order {
    fn from(operator: Operator) -> Self {
        match operator {
            Operator::Equal => Self::Within,
            Operator::Less => Self::Before,
            Operator::LessOrEqual => Self::NotAfter,
            Operator::More => Self::After,
            Operator::MoreOrEqual => Self::NotBefore,
        }
    }
}

/// Tells whether a text is made of some parts, with any text between them.
fn is_like(text: &str, parts: &[String]) -> bool {
    let text = text.to_lowercase();
    let [first, rest @ ..] = parts else { return text.is_empty() };
    let [middle @ .., last] = rest else { return text == *first };
    let Some(mut text) = text.strip_prefix(first.as_str()) else { return false };
    for part in middle {
        match text.find(part.as_str()) {
            Some(at) => text = &text[at + part.len()..],
            None => return false,
        }
    }
    text.ends_with(last.as_str())
}

/// A piece of an expression, and the byte where it begins.
#[derive(Debug, Clone, PartialEq)]
struct Token {
    at: usize,
    kind: TokenKind,
}

#[derive(Debug, Clone, PartialEq)]
enum TokenKind {
    Open,
    Close,
    Comma,
    Operator(&'static str),
    Word(String),
    Quoted(String),
    End,
}

/// Operators that are written with signs, the longer ones first.
const SIGNS: [&str; 8] = ["==", "!=", "<>", "<=", ">=", "=", "<", ">"];

struct Reader<'a> {
    text: &'a str,
    tokens: Vec<Token>,
    next: usize,
    depth: usize,
    fields: Vec<&'static Field>,
}

impl FromStr for Expression {
    type Err = ExpressionError;

    fn from_str(text: &str) -> Result<Self, ExpressionError> {
        let tokens = tokens(text)?;
        let mut reader = Reader { text, tokens, next: 0, depth: 0, fields: Vec::new() };
        let root = reader.either()?;
        let rest = reader.peek();
        if rest.kind != TokenKind::End {
            let detail = "`and`, `or` or the end is expected here";
            return Err(reader.wrong(rest.at, detail));
        }
        let fields = reader.fields;
        let needs = Needs::of(fields.iter().copied());
        Ok(Self { text: text.to_owned(), root, needs, fields })
    }
}

fn tokens(text: &str) -> Result<Vec<Token>, ExpressionError> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        let (kind, length) = match c {
            c if c.is_whitespace() => {
                at += c.len_utf8();
                continue;
            }
            '(' => (TokenKind::Open, 1),
            ')' => (TokenKind::Close, 1),
            ',' => (TokenKind::Comma, 1),
            '\'' | '"' => {
                let Some(end) = rest[1..].find(c) else {
                    let detail = "the text that begins here does not end".to_owned();
                    return Err(ExpressionError { text: text.to_owned(), at, detail });
                };
                (TokenKind::Quoted(rest[1..=end].to_owned()), end + 2)
            }
            _ => {
                if let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
                    (TokenKind::Operator(sign), sign.len())
                } else {
                    let is_end = |c: char| c.is_whitespace() || "(),=<>!'\"".contains(c);
                    // A `!` alone is a word that nothing knows.
                    let first = c.len_utf8();
                    let end = rest[first..].find(is_end).map_or(rest.len(), |end| first + end);
                    (TokenKind::Word(rest[..end].to_owned()), end)
                }
            }
        };
        tokens.push(Token { at, kind });
        at += length;
    }
    tokens.push(Token { at: text.len(), kind: TokenKind::End });
    Ok(tokens)
}

impl Reader<'_> {
    fn wrong(&self, at: usize, detail: impl Into<String>) -> ExpressionError {
        ExpressionError { text: self.text.to_owned(), at, detail: detail.into() }
    }

    fn peek(&self) -> Token {
        self.tokens[self.next.min(self.tokens.len() - 1)].clone()
    }

    fn take(&mut self) -> Token {
        let token = self.peek();
        self.next += 1;
        token
    }

    /// Takes the next token if it is this word.
    fn word(&mut self, word: &str) -> bool {
        let found = matches!(&self.peek().kind, TokenKind::Word(w) if w.eq_ignore_ascii_case(word));
        self.next += usize::from(found);
        found
    }

    fn either(&mut self) -> Result<Node, ExpressionError> {
        let mut parts = vec![self.both()?];
        while self.word("or") {
            parts.push(self.both()?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { Node::Or(parts) })
    }

    fn both(&mut self) -> Result<Node, ExpressionError> {
        let mut parts = vec![self.negated()?];
        while self.word("and") {
            parts.push(self.negated()?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { Node::And(parts) })
    }

    fn negated(&mut self) -> Result<Node, ExpressionError> {
        let at = self.peek().at;
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(self.wrong(at, format!("more than {DEPTH_MAX} parts stand in each other")));
        }
        let node = if self.word("not") {
            Node::Not(Box::new(self.negated()?))
        } else if self.peek().kind == TokenKind::Open {
            self.next += 1;
            let inside = self.either()?;
            let close = self.take();
            if close.kind != TokenKind::Close {
                return Err(self.wrong(close.at, "`)`, `and` or `or` is expected here"));
            }
            inside
        } else {
            self.test()?
        };
        self.depth -= 1;
        Ok(node)
    }

    fn test(&mut self) -> Result<Node, ExpressionError> {
        let token = self.take();
        let TokenKind::Word(name) = &token.kind else {
            return Err(self.wrong(token.at, format!("a field is expected here: {}", names())));
        };
        let Some(field) = Field::named(name).filter(|field| may_be_tested(field)) else {
            let detail = match Field::named(name) {
                Some(_) => format!("`{name}` cannot be compared: there are {}", names()),
                None => format!("`{name}` is no field: there are {}", names()),
            };
            return Err(self.wrong(token.at, detail));
        };
        self.fields.push(field);
        let negated = self.word("not");
        if self.word("in") {
            let test = Test::OneOf(self.list(field)?);
            return Ok(negate(Node::Test(field, test), negated));
        }
        let operator = self.take();
        if let TokenKind::Word(word) = &operator.kind
            && word.eq_ignore_ascii_case("like")
        {
            return Ok(negate(self.like(field, operator.at)?, negated));
        }
        let expected = "an operator is expected here: =, !=, <, <=, >, >=, in, like";
        let TokenKind::Operator(sign) = operator.kind else {
            return Err(self.wrong(operator.at, expected));
        };
        if negated {
            return Err(self.wrong(operator.at, "after `not`, `in` or `like` is expected here"));
        }
        let operand = self.operand(field)?;
        let (operator, negated) = match sign {
            "<" => (Operator::Less, false),
            "<=" => (Operator::LessOrEqual, false),
            ">" => (Operator::More, false),
            ">=" => (Operator::MoreOrEqual, false),
            "!=" | "<>" => (Operator::Equal, true),
            _ => (Operator::Equal, false),
        };
        Ok(negate(Node::Test(field, Test::Compare(operator, operand)), negated))
    }

    fn like(&mut self, field: &'static Field, at: usize) -> Result<Node, ExpressionError> {
        if field.column.kind != Kind::Text {
            return Err(self.wrong(at, "`like` is for texts"));
        }
        let Operand::Text(pattern) = self.operand(field)? else {
            return Err(self.wrong(at, "`like` is for texts"));
        };
        let parts = pattern.to_lowercase().split('*').map(str::to_owned).collect();
        Ok(Node::Test(field, Test::Like(parts)))
    }

    fn list(&mut self, field: &'static Field) -> Result<Vec<Operand>, ExpressionError> {
        let open = self.take();
        if open.kind != TokenKind::Open {
            return Err(self.wrong(open.at, "`(` is expected here: `in (a, b)`"));
        }
        let mut list = vec![self.operand(field)?];
        loop {
            let token = self.take();
            match token.kind {
                TokenKind::Comma => list.push(self.operand(field)?),
                TokenKind::Close => return Ok(list),
                _ => return Err(self.wrong(token.at, "`,` or `)` is expected here")),
            }
        }
    }

    fn operand(&mut self, field: &Field) -> Result<Operand, ExpressionError> {
        let token = self.take();
        let (TokenKind::Word(text) | TokenKind::Quoted(text)) = token.kind else {
            return Err(self.wrong(token.at, "a value is expected here"));
        };
        let name = field.column.name;
        let read = match field.column.kind {
            Kind::Count | Kind::Number => text.parse().ok().map(Operand::Number),
            Kind::Flag => text.parse().ok().map(Operand::Flag),
            Kind::Date | Kind::Time => Span::read(&text).map(Operand::Span),
            _ => Some(Operand::Text(text.clone())),
        };
        read.ok_or_else(|| {
            let what = match field.column.kind {
                Kind::Flag => "true or false",
                Kind::Date | Kind::Time => {
                    "a year, month, day or moment: 2026, 2026-11, 2026-11-21, 2026-11-21T06:00:00Z"
                }
                _ => "a number",
            };
            self.wrong(token.at, format!("`{text}` is no value of `{name}`, which is {what}"))
        })
    }
}

fn negate(node: Node, negated: bool) -> Node {
    if negated { Node::Not(Box::new(node)) } else { node }
}

/// Tells whether a field has single values.
fn may_be_tested(field: &Field) -> bool {
    !matches!(
        field.column.kind,
        Kind::Texts | Kind::Links | Kind::Images | Kind::Headers | Kind::Keys
    )
}

fn names() -> String {
    let fields = FIELDS.iter().filter(|field| may_be_tested(field));
    fields.map(|field| field.column.name).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A document in which some fields are known.
    fn value(field: &Field) -> Value {
        match field.column.name {
            "host" => "www.example.org".into(),
            "language" => "zh".into(),
            "title" => "Bridge opens, at last".into(),
            "published" => "2026-11-21".into(),
            "modified" => "".into(),
            "copies" => Value::Count(3),
            "quality" => Value::Number(0.75),
            "unsettled" => Value::Flag(false),
            _ => Value::None,
        }
    }

    #[track_caller]
    fn check(text: &str, expected: bool) {
        let read: Expression = text.parse().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(read.root.holds(&mut value), expected, "{text}");
    }

    #[test]
    fn documents_are_taken_by_what_is_compared() {
        for (text, expected) in [
            ("host = www.example.org", true),
            ("host = example.org", false),
            ("host like *.example.org", true),
            ("host not like '*.example.org'", false),
            ("title like \"*OPENS, at*\"", true),
            ("title like opens*", false),
            ("language in (en, zh)", true),
            ("language not in (en, zh)", false),
            ("language != en and copies >= 3", true),
            ("copies > 3 or quality < 0.8", true),
            ("not (copies > 3 or quality < 0.8)", false),
            ("copies = 1 or copies = 3 and quality > 0.9", false),
            ("(copies = 1 or copies = 3) and quality > 0.7", true),
            ("unsettled = false", true),
            ("published = 2026-11", true),
            ("published <= 2026-11", true),
            ("published < 2026-11", false),
            ("published > 2026-11-20", true),
            ("published >= 2026-11-22", false),
            ("published = 2026-11-21T00:00:00Z", true),
            // What is not known fails, and so its opposite holds.
            ("modified < 2030", false),
            ("not modified < 2030", true),
            ("words > 0", false),
            ("words != 0", true),
        ] {
            check(text, expected);
        }
    }

    #[test]
    fn an_error_points_at_its_place() {
        for (text, at, told) in [
            ("", 1, "a field is expected"),
            ("host = a and pubished > 2026", 14, "`pubished` is no field: there are docId,"),
            ("keys = 1", 1, "`keys` cannot be compared"),
            ("host", 5, "an operator is expected"),
            ("host =", 7, "a value is expected"),
            ("host = 'a", 8, "does not end"),
            ("copies > many", 10, "`many` is no value of `copies`, which is a number"),
            ("published > soon", 13, "2026-11-21"),
            ("language in zh", 13, "`(` is expected"),
            ("language in (zh; en)", 18, "`,` or `)` is expected"),
            ("(copies > 1", 12, "`)`, `and` or `or`"),
            ("copies > 1 copies < 5", 12, "`and`, `or` or the end"),
            ("copies not > 1", 12, "after `not`"),
            ("copies like 1", 8, "`like` is for texts"),
            ("題 = 1", 1, "no field"),
        ] {
            let error = text.parse::<Expression>().unwrap_err().to_string();
            assert!(error.contains(told), "{text}: {error}");
            assert!(error.starts_with(&format!("at character {at}:")), "{text}: {error}");
            let mark = error.lines().last().unwrap();
            assert_eq!(mark.len(), 2 + at, "{text}: {error}");
        }
        let deep = "not ".repeat(60) + "copies = 1";
        assert!(deep.parse::<Expression>().is_err());
    }
}
