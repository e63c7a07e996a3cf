//! To be written.
#![allow(missing_docs)]
use std::time::Duration;
pub struct Options { pub google_extras: bool }
impl Default for Options { fn default() -> Self { Self { google_extras: true } } }
pub struct Rules;
impl Rules { pub fn parse(_: &[u8], _: &Options) -> Self { Self } pub fn for_agent(&self, _: &str) -> AgentRules { AgentRules } }
#[derive(Debug, Clone)]
pub struct AgentRules;
impl AgentRules { pub fn allowed(&self, _: &str) -> bool { true } pub fn crawl_delay(&self) -> Option<Duration> { None } }
pub mod meta { #[derive(Default)] pub struct Directives { pub noindex: bool, pub nofollow: bool } impl Directives { pub fn merge(&self, _: &Self) -> Self { Self::default() } pub fn from_meta(_: &str, _: &str, _: &str) -> Self {Self::default()} pub fn from_header(_: &str, _: &str) -> Self {Self::default()} } }
