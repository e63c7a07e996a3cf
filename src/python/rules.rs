//! robots.txt files.

use pyo3::prelude::*;

use crate::web::robots::{Options, RobotsRules};

use super::{TextOrBytes, apart};

/// The rules of a robots.txt (RFC 9309).
#[pyclass(frozen, module = "uniqcrawl.robots")]
pub(super) struct Rules(RobotsRules);

#[pymethods]
impl Rules {
    /// Tell whether a crawler with this product token may fetch a URL or path.
    fn allowed(&self, agent: &str, url: &str) -> bool {
        self.0.verdict(agent, url).allowed
    }

    /// Return the line that decides, such as `Disallow: /private`, or None if no rule matches.
    fn rule(&self, agent: &str, url: &str) -> Option<String> {
        self.0.verdict(agent, url).rule.map(|rule| rule.text)
    }

    /// Return the seconds between two requests that the file asks of a crawler, or None.
    fn crawl_delay(&self, agent: &str) -> Option<f64> {
        self.0.for_agent(agent).crawl_delay().map(|delay| delay.as_secs_f64())
    }

    /// URLs of sitemaps.
    #[getter]
    fn sitemaps(&self) -> Vec<String> {
        self.0.sitemaps().to_vec()
    }
}

/// Read a robots.txt, a str or bytes. Nothing in it is an error: what cannot be read is passed
/// over.
#[pyfunction]
pub(super) fn parse(py: Python<'_>, body: TextOrBytes) -> PyResult<Rules> {
    let bytes = body.bytes();
    apart(py, || Rules(RobotsRules::parse(bytes, &Options::default())))
}

/// Tell whether a robots.txt lets a crawler with this product token fetch a URL or path.
#[pyfunction]
pub(super) fn allowed(py: Python<'_>, body: TextOrBytes, agent: &str, url: &str) -> PyResult<bool> {
    let bytes = body.bytes();
    apart(py, || RobotsRules::parse(bytes, &Options::default()).verdict(agent, url).allowed)
}
