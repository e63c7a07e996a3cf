//! Many checks at once, as lines of JSON.

use serde::Deserialize;

use crate::base::decode_base64;

use super::{Options, RobotsRules};

/// Why a line cannot be answered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BatchError {
    /// Not the JSON that is asked for.
    #[error("not a line {{\"robots_base64\", \"checks\": [[agent, url], ...]}}: {0}")]
    Json(#[from] serde_json::Error),
    /// The file is not base64.
    #[error("`robots_base64` is not base64")]
    Base64,
    /// A check has no agent or no URL.
    #[error("check {0} is not [agent, url]")]
    Check(usize),
}

#[derive(Deserialize)]
struct CheckLine {
    robots_base64: String,
    checks: Vec<Vec<serde_json::Value>>,
}

/// The answer to a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchAnswer {
    /// One character a check: `1` allowed, `0` not.
    pub checks: String,
    /// The file was cut after this many bytes.
    pub cut: Option<usize>,
}

/// Answers a line `{"robots_base64": "...", "checks": [[agent, url], ...]}`. Further elements of a
/// check are passed over.
pub fn batch_line(line: &str, options: &Options) -> Result<BatchAnswer, BatchError> {
    let line: CheckLine = serde_json::from_str(line)?;
    let body = decode_base64(&line.robots_base64).ok_or(BatchError::Base64)?;
    let rules = RobotsRules::parse(&body, options);
    let mut checks = String::with_capacity(line.checks.len());
    for (number, check) in line.checks.iter().enumerate() {
        let text = |at: usize| check.get(at).and_then(serde_json::Value::as_str);
        let (Some(agent), Some(url)) = (text(0), text(1)) else {
            return Err(BatchError::Check(number));
        };
        checks.push(if rules.verdict(agent, url).allowed { '1' } else { '0' });
    }
    Ok(BatchAnswer { checks, cut: rules.cut() })
}
