//! Versions of programs, and which of etcd's may be trusted with leases.

use std::fmt;

/// `major.minor.patch`; what comes after a `-` or `+` does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(u64, u64, u64);

impl Version {
    /// Reads `3.6.1`, `v3.6.1` or `3.6.1-rc.0`.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let mut numbers = text.split(['-', '+']).next()?.split('.').map(|part| part.parse::<u64>().ok());
        let version = Self(numbers.next()??, numbers.next()??, numbers.next()??);
        numbers.next().is_none().then_some(version)
    }

    /// Whether an etcd of this version looks whether it still leads before it renews a lease. Where it does not, a leader
    /// that was deposed while its disk stalled goes on renewing them (fixed in 3.4.31 and 3.5.13; 3.6 never had it).
    pub(crate) fn keeps_leases_right(self) -> bool {
        match (self.0, self.1) {
            (3, 5) => self.2 >= 13,
            (3, 4) => self.2 >= 31,
            release => release >= (3, 6),
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_with_the_lease_bug_are_known() {
        for (text, right) in [
            ("3.3.27", false),
            ("3.4.23", false),
            ("3.4.30", false),
            ("3.4.31", true),
            ("3.5.0", false),
            ("3.5.12", false),
            ("3.5.13", true),
            ("3.6.0-rc.3", true),
            ("v3.7.1", true),
            ("4.0.0", true),
        ] {
            assert_eq!(Version::parse(text).expect(text).keeps_leases_right(), right, "{text}");
        }
        for text in ["", "3", "3.6", "3.6.x", "3.6.1.2", "not_decided"] {
            assert_eq!(Version::parse(text), None, "{text}");
        }
        assert!(Version::parse("0.10.0") > Version::parse("0.9.9"));
    }
}
