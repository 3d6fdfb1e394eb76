//! The ways out of what stops a fence: for each reason what a person does, and with which commands.
//!
//! **Purpose.** One table. The command line's words are made from it, `docs/stops.md` is held to it, and a
//! test walks every way.
//!
//! # Invariants
//!
//! - Each reason that keeps a node off has a way that the role operator may take, or one that the settings
//!   open (S16). Shown by `each_has_a_way_that_an_operator_may_take_or_the_settings_open`,
//!   `every_way_out_leads_where_it_says`.

use crate::v1::{OutcomeKind, Phase, Reason};

/// A command that leads out, or a step towards it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Exit {
    /// Try it again: our own off and evidence from zero; after a power-on that failed the on.
    Retry,
    /// The same by a person who saw the machine off after its BMC restarted.
    RetrySeenOff,
    /// A person vouches that it is off.
    Attest,
    /// Give a release up, by name; each that is in the way.
    Abandon,
    /// It was alive, or is to be let be: no on is sent to it.
    StandDown,
    /// The hardware is gone for good.
    Retire,
    /// What a device says that it controls is right.
    AcceptIdentity,
    /// Fence it, from zero.
    Fence,
    /// The fence under way asks for a lower grade.
    FenceForLess,
    /// Fence it once its turn comes.
    Queue,
    /// Set budget, cool-down and brake aside for this node.
    OverrideBudget,
    /// Fence it although that costs the store its quorum.
    OverrideQuorum,
    /// Drop the hold under which a restore keeps it off.
    DropRestored,
    /// End the hold of a machine that runs on it, and what it proves of that one.
    EndChildsHold,
    /// End the pause.
    Resume,
    /// Let the brake go.
    ResumeEverything,
}

impl Exit {
    /// The command. In capitals what it is about: `NODE`; `RELEASE` of the node; its `DEVICE`; a `CHILD` that runs on it; a `GRADE` of
    /// evidence; the `SCOPE` of a pause; a `REASON`.
    pub fn command(self) -> &'static str {
        match self {
            Exit::Retry => "picket retry NODE",
            Exit::RetrySeenOff => "picket retry NODE --seen-off",
            Exit::Attest => "picket attest NODE",
            Exit::Abandon => "picket abandon NODE RELEASE",
            Exit::StandDown => "picket stand-down NODE",
            Exit::Retire => "picket retire NODE",
            Exit::AcceptIdentity => "picket accept-identity NODE DEVICE",
            Exit::Fence => "picket fence NODE",
            Exit::FenceForLess => "picket fence NODE --minimum-grade GRADE",
            Exit::Queue => "picket fence NODE --queue",
            Exit::OverrideBudget => "picket fence NODE --override-budget REASON",
            Exit::OverrideQuorum => "picket fence NODE --override-quorum REASON",
            Exit::DropRestored => "picket unhold NODE --holder restored",
            Exit::EndChildsHold => "picket unhold NODE --holder child:CHILD",
            Exit::Resume => "picket resume SCOPE",
            Exit::ResumeEverything => "picket resume --everything",
        }
    }

    /// The role that it needs, by its word in `[roles]`.
    pub fn role(self) -> &'static str {
        match self {
            Exit::Fence | Exit::Queue => "controller",
            Exit::Retry
            | Exit::RetrySeenOff
            | Exit::Abandon
            | Exit::StandDown
            | Exit::FenceForLess
            | Exit::Resume
            | Exit::ResumeEverything => "operator",
            Exit::Attest => "attest",
            Exit::Retire
            | Exit::AcceptIdentity
            | Exit::OverrideBudget
            | Exit::OverrideQuorum
            | Exit::DropRestored
            | Exit::EndChildsHold => "admin",
        }
    }
}

/// One way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// What a person saw, or does in the world, before the commands.
    pub when: &'static str,
    /// The commands, in this order. None: what stands before is all that it takes.
    pub exits: &'static [Exit],
    /// Where the node comes to by it.
    pub to: Phase,
}

const fn way(when: &'static str, exits: &'static [Exit], to: Phase) -> Way {
    Way { when, exits, to }
}

const MENDED: Way = way("mend what did not answer, or refused", &[Exit::Retry], Phase::Released);
const SEEN: Way = way("you looked at the machine and vouch that it is off", &[Exit::Attest], Phase::Released);
const ALIVE: Way = way("it runs, and is to run", &[Exit::Abandon, Exit::StandDown], Phase::Normal);
const GONE: Way = way("its hardware is gone for good", &[Exit::Abandon, Exit::Retire], Phase::Retired);
const OVERRIDE: Way =
    way("it cannot wait: set the limits aside for this node", &[Exit::OverrideBudget], Phase::Released);

static ORPHANED: &[Way] = &[
    way("put its settings back as they were, and reload", &[], Phase::Released),
    way("it is gone, or its settings named a wrong device", &[Exit::Abandon, Exit::Retire], Phase::Retired),
];

/// Out of NEEDS_OPERATOR.
static OF_NODE: &[(Reason, &[Way])] = &[
    (Reason::LevelsSpent, &[MENDED, SEEN, ALIVE, GONE]),
    (
        Reason::Deadline,
        &[
            MENDED,
            way(
                "a limit kept its off from being sent: set the limits aside for this node",
                &[Exit::OverrideBudget, Exit::Retry],
                Phase::Released,
            ),
            SEEN,
            ALIVE,
            GONE,
        ],
    ),
    (
        Reason::BmcRestarted,
        &[
            way(
                "look at the machine itself, or pull its plug; if it is off",
                &[Exit::RetrySeenOff],
                Phase::Released,
            ),
            SEEN,
            ALIVE,
            GONE,
        ],
    ),
    (
        Reason::Contradiction,
        &[
            way(
                "find out which device is wrong (its wiring, or a BMC that lies), and mend it",
                &[Exit::Retry],
                Phase::Released,
            ),
            ALIVE,
            GONE,
        ],
    ),
    (
        Reason::IdentityMismatch,
        &[
            way(
                "the settings give it a wrong identity: correct that, and start the gateway again",
                &[Exit::Retry],
                Phase::Released,
            ),
            way(
                "its board was exchanged, and the settings give no identity",
                &[Exit::AcceptIdentity, Exit::Retry],
                Phase::Released,
            ),
            way(
                "the address leads to another machine, which is let be: stand down, correct the address, and fence anew",
                &[Exit::Abandon, Exit::StandDown],
                Phase::Normal,
            ),
            GONE,
        ],
    ),
    (
        Reason::GradeTooLow,
        &[
            way(
                "let its devices prove more, by an identity or another device in the settings, and start the gateway again",
                &[Exit::Retry],
                Phase::Released,
            ),
            way("a lower grade is enough", &[Exit::FenceForLess], Phase::Released),
            SEEN,
            GONE,
        ],
    ),
    (
        Reason::ReleaseDeadline,
        &[
            way("mend what lets its volumes go", &[Exit::Retry], Phase::Released),
            way("its volumes are free, and you answer for that", &[Exit::Abandon], Phase::Released),
            way(
                "the release has left the settings, and what it set up stands: start the gateway with it there, as it was",
                &[Exit::Retry],
                Phase::Released,
            ),
            GONE,
        ],
    ),
    (
        Reason::UnboundedEffect,
        &[
            way("what was sent to a device has surely ended", &[Exit::Retry], Phase::Normal),
            way("the attempt to release has surely ended", &[Exit::Abandon, Exit::Retry], Phase::Normal),
        ],
    ),
    (
        Reason::Self_,
        &[
            way(
                "let a gateway on another machine lead: start one there, or move this one",
                &[Exit::Retry],
                Phase::Released,
            ),
            ALIVE,
        ],
    ),
    (
        Reason::StandDownUnseen,
        &[
            way("it is to stay off", &[Exit::Fence], Phase::Released),
            way("switch it on by hand, or mend the BMC that says off of it", &[Exit::Retry], Phase::Normal),
            GONE,
        ],
    ),
    (Reason::Orphaned, ORPHANED),
    (
        Reason::Replaced,
        &[
            way(
                "the machine that is found by its name now is the one that is meant",
                &[Exit::Retry],
                Phase::Released,
            ),
            way("its volumes are free, and you answer for that", &[Exit::Abandon], Phase::Released),
            way("the old machine is gone", &[Exit::Abandon, Exit::Retire], Phase::Retired),
        ],
    ),
    (
        Reason::BeingDeleted,
        &[
            way("it is gone", &[Exit::Abandon, Exit::Retire], Phase::Retired),
            way("it stays, and runs", &[Exit::Abandon, Exit::StandDown], Phase::Normal),
            way("it is to be off all the same", &[Exit::Retry], Phase::Released),
        ],
    ),
    (
        Reason::Restored,
        &[
            way(
                "it was brought back since the backup",
                &[Exit::DropRestored, Exit::StandDown],
                Phase::Normal,
            ),
            way("it is to be off", &[Exit::Fence], Phase::Released),
        ],
    ),
];

/// Out of BLOCKED.
static OF_REQUEST: &[(Reason, &[Way])] = &[
    (
        Reason::Self_,
        &[way(
            "let a gateway on another machine lead: start one there, or move this one",
            &[Exit::Fence],
            Phase::Released,
        )],
    ),
    (
        Reason::Quorum,
        &[
            way("bring a member of the store back", &[Exit::Fence], Phase::Released),
            way(
                "it cannot wait: nothing is confirmed or released before a member is back",
                &[Exit::OverrideQuorum],
                Phase::Released,
            ),
        ],
    ),
    (Reason::Budget, &[way("wait for its turn", &[Exit::Queue], Phase::Released), OVERRIDE]),
    (
        Reason::CoolDown,
        &[
            way("find out why it fails again, and wait for its turn", &[Exit::Queue], Phase::Released),
            OVERRIDE,
        ],
    ),
    (
        Reason::Brake,
        &[
            way(
                "look at the monitoring and the network, and mend what is wrong there; what is asked for then is dead",
                &[Exit::ResumeEverything, Exit::Fence],
                Phase::Released,
            ),
            OVERRIDE,
        ],
    ),
    (
        Reason::Paused,
        &[
            way("wait until the pause ends", &[Exit::Queue], Phase::Released),
            way("ask those who paused it; if it may end", &[Exit::Resume, Exit::Fence], Phase::Released),
        ],
    ),
    (Reason::Expired, &[way("it is dead still", &[Exit::Fence], Phase::Released)]),
    (
        Reason::Withdrawn,
        &[way("ask those who withdrew it; if it is to be off", &[Exit::Fence], Phase::Released)],
    ),
    (Reason::Orphaned, ORPHANED),
];

/// Out of POWER_ON_FAILED.
static NOT_SEEN_ON: &[Way] = &[
    way("look why the machine does not come on, and mend that", &[Exit::Retry], Phase::Normal),
    way("it runs, and is to run without the supplies that do not come on", &[Exit::StandDown], Phase::Normal),
    way("it is to be off", &[Exit::Fence], Phase::Released),
    GONE,
];

/// The step before a stand-down, or a retirement, of a node on which others run, whatever it waits for: both are refused while one of them is
/// kept off by it.
pub const KEPT_FOR: Way = way(
    "a machine that runs on it is kept off by it, which bars that it is stood down or retired: end its hold first",
    &[Exit::EndChildsHold],
    Phase::NeedsOperator,
);

/// The ways out, the best one first; none where nobody is needed.
pub fn ways(kind: OutcomeKind, reason: Reason) -> &'static [Way] {
    let of = |table: &'static [(Reason, &'static [Way])]| {
        table.iter().find(|(of, _)| *of == reason).map(|(_, ways)| *ways).unwrap_or_default()
    };
    match kind {
        OutcomeKind::NeedsOperator => of(OF_NODE),
        OutcomeKind::Blocked => of(OF_REQUEST),
        OutcomeKind::PowerOnFailed => NOT_SEEN_ON,
        _ => &[],
    }
}

/// Each of what stops a fence, with its ways.
pub fn all() -> impl Iterator<Item = (OutcomeKind, Reason, &'static [Way])> {
    let of = |kind, table: &'static [(Reason, &'static [Way])]| {
        table.iter().map(move |(reason, ways)| (kind, *reason, *ways))
    };
    let not_seen_on = (OutcomeKind::PowerOnFailed, Reason::Unspecified, NOT_SEEN_ON);
    let of_requests = of(OutcomeKind::Blocked, OF_REQUEST);
    of(OutcomeKind::NeedsOperator, OF_NODE).chain(of_requests).chain([not_seen_on])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_a_way_that_an_operator_may_take_or_the_settings_open() {
        for (kind, reason, ways) in all() {
            let is_operators =
                |way: &Way| way.exits.iter().all(|exit| ["controller", "operator"].contains(&exit.role()));
            assert!(ways.iter().any(is_operators), "{kind:?} {reason:?}");
        }
    }

    #[test]
    fn every_reason_stops_something_but_one_that_no_gateway_says() {
        let kinds = [OutcomeKind::NeedsOperator, OutcomeKind::Blocked];
        let without: Vec<Reason> = (0..)
            .map_while(|number| Reason::try_from(number).ok())
            .filter(|reason| kinds.iter().all(|kind| ways(*kind, *reason).is_empty()))
            .collect();
        assert_eq!(without, [Reason::Unspecified, Reason::Breach]);
    }
}
