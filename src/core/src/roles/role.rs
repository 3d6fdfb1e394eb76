//! The roles.

use std::fmt;

/// What a caller may do. Each does what those before it do, except [`Role::Attest`], which stands apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Looks, and changes nothing.
    Viewer,
    /// Fences, and takes back what is its own: a program.
    Controller,
    /// Decides what a fence that waits for a person does next.
    Operator,
    /// Sets limits and other people's holds aside.
    Admin,
    /// Vouches that a node is off (S12). Implied by no other, and implies none.
    Attest,
}

impl Role {
    /// All of them, with their words.
    pub const WORDS: [(&'static str, Role); 5] = [
        ("viewer", Role::Viewer),
        ("controller", Role::Controller),
        ("operator", Role::Operator),
        ("admin", Role::Admin),
        ("attest", Role::Attest),
    ];

    /// Its word in settings, logs and answers.
    pub fn word(self) -> &'static str {
        match self {
            Role::Viewer => "viewer",
            Role::Controller => "controller",
            Role::Operator => "operator",
            Role::Admin => "admin",
            Role::Attest => "attest",
        }
    }

    /// Whether who has this role may do what `needed` may.
    pub fn does(self, needed: Role) -> bool {
        match (self, needed) {
            (Role::Attest, _) | (_, Role::Attest) => self == needed,
            _ => self >= needed,
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_role_does_what_those_before_it_do() {
        let ladder = [Role::Viewer, Role::Controller, Role::Operator, Role::Admin];
        for (high, role) in ladder.iter().enumerate() {
            for (low, needed) in ladder.iter().enumerate() {
                assert_eq!(role.does(*needed), high >= low, "{role} for {needed}");
            }
        }
    }

    #[test]
    fn attest_is_never_implied_and_implies_nothing() {
        for (_, role) in Role::WORDS {
            assert_eq!(role.does(Role::Attest), role == Role::Attest, "{role}");
            assert_eq!(Role::Attest.does(role), role == Role::Attest, "{role}");
        }
    }

    #[test]
    fn words_are_the_roles() {
        assert!(Role::WORDS.iter().all(|(word, role)| *word == role.word()));
    }
}
