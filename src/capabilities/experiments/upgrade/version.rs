//! The version of the server, which decides the format of its calls.
//!
//! The version text answers reliably only one question, *below 6.3 or not*: some tags report a lower minor than their
//! own.

/// The version a server reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// The reported text, such as `6.5.0`.
    pub text: String,
}

impl Version {
    /// Returns true if the server is of the 6.2 line or older: inclusion and exclusion are one object each and must
    /// be sent. An unreadable version counts as new.
    pub fn is_below_6_3(&self) -> bool {
        let mut numbers = self.text.split('.').map_while(|part| part.parse::<u32>().ok());
        match (numbers.next(), numbers.next()) {
            (Some(major), Some(minor)) => (major, minor) < (6, 3),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_below_6_3_counts() {
        let below = |text: &str| Version { text: text.into() }.is_below_6_3();
        assert!(below("6.2.0") && below("6.1") && below("5.9.9"));
        assert!(!below("6.3.0") && !below("6.5.0") && !below("7.0.0") && !below("next"));
    }
}
