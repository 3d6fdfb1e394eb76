//! How the command ends, for scripts. These numbers never change their meaning.

use std::process::ExitCode;

/// An exit code. With several nodes the worst one counts: see [`Exit::worst`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// 0: what was asked for is so: fenced, unfenced, listed.
    Done,
    /// 1: any other error.
    Failed,
    /// 2: wrong arguments or settings, or a question that was not answered with yes. Nothing was sent.
    Usage,
    /// 3: blocked: the gateway's own machine, a budget, a pause; nothing was sent. Or another's hold keeps the node off.
    Blocked,
    /// 4: a person must decide, or the power-on was not seen.
    NeedsOperator,
    /// 5: no gateway answers, or the way to it broke and stayed broken; none leads, or its store cannot be asked or written.
    /// Asked again with the same key it may be done.
    Unreachable,
    /// 6: no such node, fence, release, hold or receipt.
    NotFound,
    /// 7: not known to the gateway, or not allowed.
    Denied,
    /// 8: overtaken: superseded, stood down, another generation, too late, or not possible in the node's phase.
    Overtaken,
    /// 9: the node recovered before anything was sent. It is not off.
    Recovered,
    /// 10: not done within `--timeout`; what was begun goes on.
    TimedOut,
    /// 130: interrupted; what was begun goes on.
    Interrupted,
}

impl Exit {
    /// The number.
    pub fn code(self) -> u8 {
        match self {
            Exit::Done => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::Blocked => 3,
            Exit::NeedsOperator => 4,
            Exit::Unreachable => 5,
            Exit::NotFound => 6,
            Exit::Denied => 7,
            Exit::Overtaken => 8,
            Exit::Recovered => 9,
            Exit::TimedOut => 10,
            Exit::Interrupted => 130,
        }
    }

    /// How bad it is when several nodes end differently: what is known not to have begun is less bad than what is not
    /// known, and a node that waits for a person is the worst.
    fn weight(self) -> u8 {
        match self {
            Exit::Done => 0,
            Exit::Recovered => 1,
            Exit::Blocked => 2,
            Exit::Overtaken => 3,
            Exit::NotFound => 4,
            Exit::Usage => 5,
            Exit::Denied => 6,
            Exit::TimedOut => 7,
            Exit::Interrupted => 8,
            Exit::Unreachable => 9,
            Exit::Failed => 10,
            Exit::NeedsOperator => 11,
        }
    }

    /// The worst of several; [`Exit::Done`] of none.
    pub fn worst(exits: impl IntoIterator<Item = Exit>) -> Exit {
        exits.into_iter().max_by_key(|exit| exit.weight()).unwrap_or(Exit::Done)
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit.code())
    }
}

/// What `picket help exit-codes` says of them.
pub const MEANINGS: &[(u8, &str)] = &[
    (0, "done: fenced, unfenced, listed"),
    (1, "any other error; also: a receipt that is not the gateway's"),
    (2, "wrong arguments or settings, or a question not answered with yes"),
    (
        3,
        "blocked: the gateway stands on that node, or a budget or a pause bars it, nothing was sent; or, of unfence, others still \
         hold the node, and it stays off",
    ),
    (4, "needs an operator, or the power-on was not seen"),
    (
        5,
        "no gateway answers, none leads, or its store cannot be written: worth asking again, with the same key",
    ),
    (6, "no such node, fence, release, hold or receipt"),
    (7, "not known to the gateway, or not allowed"),
    (
        8,
        "overtaken: superseded, stood down, another generation, or not possible now; or, of a receipt, expired, handed back or void",
    ),
    (9, "recovered before anything was sent: the node is not off"),
    (10, "not done within --timeout; what was begun goes on"),
    (130, "interrupted; what was begun goes on"),
];

/// What scripts get of a command that fails as a whole.
pub const DOCUMENT: &str = "With -o json or yaml a command that fails as a whole writes a document with `error` (code, reason, message, \
     details, metadata, retry_after_s) and `exit_code` to standard output, and its words to standard error.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_counts_and_a_person_is_the_worst() {
        assert_eq!(Exit::worst([]), Exit::Done);
        assert_eq!(Exit::worst([Exit::Done, Exit::Blocked]), Exit::Blocked);
        assert_eq!(Exit::worst([Exit::Failed, Exit::NeedsOperator, Exit::Unreachable]), Exit::NeedsOperator);
    }

    #[test]
    fn help_names_every_code() {
        for exit in [
            Exit::Done,
            Exit::Failed,
            Exit::Usage,
            Exit::Blocked,
            Exit::NeedsOperator,
            Exit::Unreachable,
            Exit::NotFound,
            Exit::Denied,
            Exit::Overtaken,
            Exit::Recovered,
            Exit::TimedOut,
            Exit::Interrupted,
        ] {
            assert!(MEANINGS.iter().any(|(code, _)| *code == exit.code()), "{exit:?}");
        }
    }
}
