//! stub
#![allow(missing_docs, clippy::all, clippy::pedantic)]
pub struct DecodeLimits {
    pub bytes_max: usize,
    pub ratio_max: u32,
    pub ratio_grace_bytes: usize,
}
pub struct Decoded {
    pub bytes: Vec<u8>,
    pub truncated: bool,
}
#[derive(Debug)]
pub enum DecodeError {
    Unsupported,
    Corrupt,
    Bomb { ratio: u32 },
}
pub fn decode(raw: &[u8], _: &str, _: &DecodeLimits, _: bool) -> Result<Decoded, DecodeError> {
    Ok(Decoded { bytes: raw.to_vec(), truncated: false })
}
