//! Settings of filters by the names of their flags, as requests give them.

use super::{Config, Personal, Rule};

impl Config {
    /// The names that a request may use: those of flags. A list of words is a file of this machine,
    /// which no request names.
    pub const NAMES: [&'static str; 9] = [
        "filter",
        "languages",
        "min-certainty",
        "min-language-share",
        "min-words",
        "max-words",
        "min-chars",
        "max-chars",
        "mask",
    ];

    /// Sets what a flag of that name sets. Several values have commas between them.
    ///
    /// # Errors
    ///
    /// What the value must be, in words.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "filter" => {
                self.rules = listed(value, &Rule::ALL, Rule::as_str)?;
            }
            "mask" => {
                self.mask = listed(value, &Personal::ALL, Personal::as_str)?;
            }
            "languages" => {
                self.languages = value.split(',').map(str::to_owned).collect();
            }
            "min-certainty" => self.language_certainty_min = share(value)?,
            "min-language-share" => self.language_share_min = share(value)?,
            "min-words" => self.words_min = count(value)?,
            "max-words" => self.words_max = count(value)?,
            "min-chars" => self.chars_min = count(value)?,
            "max-chars" => self.chars_max = count(value)?,
            _ => return Err(format!("there are {}", Self::NAMES.join(", "))),
        }
        Ok(())
    }

    /// Returns what [`Config::set`] makes these settings of; none if they have something that has
    /// no such name.
    #[must_use]
    pub fn named(&self) -> Option<Vec<(&'static str, String)>> {
        let mut pairs = Vec::new();
        let usual = Self::default();
        for name in Self::NAMES {
            let value = self.value(name);
            if value != usual.value(name) {
                pairs.push((name, value));
            }
        }
        let mut made = usual;
        let is_made = pairs.iter().all(|(name, value)| made.set(name, value).is_ok());
        (is_made && made == *self).then_some(pairs)
    }

    /// Returns a setting as it is written.
    fn value(&self, name: &str) -> String {
        let join = |names: Vec<&str>| names.join(",");
        match name {
            "filter" => join(self.rules.iter().map(|rule| rule.as_str()).collect()),
            "mask" => join(self.mask.iter().map(|kind| kind.as_str()).collect()),
            "languages" => self.languages.join(","),
            "min-certainty" => self.language_certainty_min.to_string(),
            "min-language-share" => self.language_share_min.to_string(),
            "min-words" => self.words_min.to_string(),
            "max-words" => self.words_max.to_string(),
            "min-chars" => self.chars_min.to_string(),
            _ => self.chars_max.to_string(),
        }
    }
}

fn listed<T: Copy>(value: &str, all: &[T], name: fn(T) -> &'static str) -> Result<Vec<T>, String> {
    let names = || all.iter().map(|one| name(*one)).collect::<Vec<_>>().join(", ");
    let find = |wanted: &str| all.iter().find(|one| name(**one) == wanted).copied();
    let each = value.split(',').map(|wanted| find(wanted).ok_or_else(names));
    each.collect::<Result<_, _>>().map_err(|names| format!("it is one or some of {names}"))
}

fn share(value: &str) -> Result<f32, String> {
    value.parse().map_err(|_| "it is a share from 0 to 1".to_owned())
}

fn count(value: &str) -> Result<usize, String> {
    value.parse().map_err(|_| "it is a number".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_are_named_are_read_as_they_were() {
        let mut config = Config::default();
        assert_eq!(config.named(), Some(Vec::new()));
        for (name, value) in [
            ("filter", "gopher-quality,c4"),
            ("languages", "en,zh"),
            ("min-certainty", "0.5"),
            ("min-language-share", "0.25"),
            ("min-words", "5"),
            ("max-words", "90000"),
            ("min-chars", "6"),
            ("max-chars", "100000"),
            ("mask", "mail,phone"),
        ] {
            config.set(name, value).unwrap();
            let pairs = config.named().unwrap();
            assert!(pairs.contains(&(name, value.to_owned())), "{pairs:?}");
        }
        assert_eq!(config.named().unwrap().len(), Config::NAMES.len());
        for (name, value) in [("filter", "c5"), ("mask", ""), ("min-words", "-1"), ("where", "x")] {
            assert!(config.set(name, value).is_err(), "{name}");
        }
        config.blocked_words_file = "words.txt".to_owned();
        assert_eq!(config.named(), None, "a file has no such name");
    }
}
