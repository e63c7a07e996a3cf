//! stub
#![allow(missing_docs, clippy::all, clippy::pedantic)]
pub struct Input<'a> {
    pub bytes: &'a [u8],
    pub content_type: Option<&'a str>,
    pub url: Option<&'a url::Url>,
}
#[derive(Debug, Clone, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct Limits {}
pub struct Link {
    pub url: url::Url,
    pub nofollow: bool,
}
#[derive(Default)]
pub struct Page {
    pub title: String,
    pub text: String,
    pub language: Option<String>,
    pub links: Vec<Link>,
    pub canonical: Option<String>,
    pub meta_robots: Vec<(String, String)>,
    pub popularity: Option<u64>,
}
pub fn page(_: &Input<'_>, _: &Limits) -> Page {
    Page::default()
}
