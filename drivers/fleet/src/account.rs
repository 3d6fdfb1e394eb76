//! Who may log in to a simulated BMC.

use std::fmt;

/// What somebody may do, in the order of IPMI's privilege levels (IPMI 2.0 table 6-4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Look.
    User = 2,
    /// Switch power.
    Operator = 3,
    /// Everything.
    Administrator = 4,
}

impl Role {
    /// The role of that level (IPMI 2.0 table 22-25).
    pub fn from_level(level: u8) -> Option<Self> {
        [Self::User, Self::Operator, Self::Administrator].into_iter().find(|role| *role as u8 == level)
    }
}

/// Somebody who may log in.
#[derive(Clone, PartialEq, Eq)]
pub struct Account {
    /// At most 16 bytes over IPMI.
    pub name: String,
    /// At most 20 bytes over IPMI. The password of a simulated BMC guards nothing.
    pub password: String,
    /// The most that it may do.
    pub role: Role,
}

impl fmt::Debug for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Account").field("name", &self.name).field("role", &self.role).finish_non_exhaustive()
    }
}
