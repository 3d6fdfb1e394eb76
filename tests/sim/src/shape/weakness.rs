//! Worlds that are weak on purpose.

/// A far side that does not keep what the law asks of it. A simulation that sees nothing then sees nothing ever.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Weakness {
    /// None: everything as it should be.
    #[default]
    None,
    /// The store lets a lease end long before its time, and another gateway win.
    LeasesEndEarly,
    /// The store takes writes of whoever led once.
    StaleWritersAreHeard,
    /// Devices carry out what comes in a session that was silent for any time (S8).
    SessionsNeverEnd,
    /// Devices say that they ended a session by its name, and carry out what comes in it (S8).
    EndedSessionsLiveOn,
    /// What releases volumes heeds no end of a request (S8).
    ReleasesHeedNoEnd,
    /// Who attaches volumes heeds no end of a detach (S8).
    DetachesHeedNoEnd,
    /// Programs that release go on when their gateway stands still, or is dead (S8).
    ProgramsOutliveTheirGateway,
    /// Devices say Off for live machines, all of them.
    EverybodyLies,
    /// The settings do not say which gateway stands on which node (S17).
    NobodyKnowsItsHost,
}

impl Weakness {
    /// All that there are.
    pub const ALL: [Self; 9] = [
        Self::LeasesEndEarly,
        Self::StaleWritersAreHeard,
        Self::SessionsNeverEnd,
        Self::EndedSessionsLiveOn,
        Self::ReleasesHeedNoEnd,
        Self::DetachesHeedNoEnd,
        Self::ProgramsOutliveTheirGateway,
        Self::EverybodyLies,
        Self::NobodyKnowsItsHost,
    ];

    /// What is sent long after its permit does harm. Much has to happen meanwhile.
    pub(crate) fn is_of_what_is_late(self) -> bool {
        matches!(
            self,
            Self::SessionsNeverEnd
                | Self::EndedSessionsLiveOn
                | Self::ReleasesHeedNoEnd
                | Self::DetachesHeedNoEnd
                | Self::ProgramsOutliveTheirGateway
        )
    }
}
