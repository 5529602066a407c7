//! The version of the server, which decides the format of its calls.
//!
//! The reported version can only be relied on to tell whether the server is older than 6.3: some
//! releases report a lower minor version than their own.

/// The version that a server reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// The reported text, such as `6.5.0`.
    pub text: String,
}

impl Version {
    /// Returns true if the server is 6.2 or older: inclusion and exclusion are then one object each and
    /// must be sent. A version that cannot be parsed counts as new.
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
    fn only_versions_below_6_3_are_old() {
        let below = |text: &str| Version { text: text.into() }.is_below_6_3();
        assert!(below("6.2.0") && below("6.1") && below("5.9.9"));
        assert!(!below("6.3.0") && !below("6.5.0") && !below("7.0.0") && !below("next"));
    }
}
