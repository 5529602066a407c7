//! SHA-256.

use ring::digest::{SHA256, digest};

/// Computes SHA-256.
pub fn sha256(bytes: &[u8]) -> [u8; 32] {
    digest(&SHA256, bytes).as_ref().try_into().expect("SHA-256 has 32 bytes")
}

#[cfg(test)]
mod tests {
    use super::sha256;

    /// The vector is from FIPS 180-4's examples.
    #[test]
    fn a_vector_holds() {
        assert_eq!(sha256(b"abc")[..8], [0xba, 0x78, 0x16, 0xbf, 0x8f, 0x01, 0xcf, 0xea]);
    }
}
