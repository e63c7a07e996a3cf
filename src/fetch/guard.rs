//! stub
#![allow(missing_docs)]
#[derive(Debug, Clone, Copy)]
pub struct Guard {
    pub allow_private: bool,
}
impl Guard {
    pub fn check(self, _: std::net::IpAddr) -> Result<(), String> {
        Ok(())
    }
}
