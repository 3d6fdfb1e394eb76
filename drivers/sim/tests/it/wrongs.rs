//! What can be wrong with a driver.

/// What is wrong with a driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// An off is taken and never sent.
    SendsNoOff,
    /// An off that is told again switches on.
    Toggles,
    /// It goes on to say what it read first.
    CachesReadings,
    /// It is off as soon as an off was taken.
    BelievesItself,
    /// "Already off" is an error.
    TakesAlreadyForAnError,
    /// Where nothing clear is said it is off.
    TakesUnknownForOff,
    /// Where nothing clear is said it is on.
    TakesUnknownForOn,
    /// Where nothing is said it is off.
    TakesSilenceForOff,
    /// It comes back long after its deadline.
    ComesBackLate,
    /// All its life is one epoch.
    HidesLosses,
    /// After a loss it looks by itself, and nobody else does.
    LooksForItself,
    /// A session is ended by saying so.
    EndsNoSession,
    /// Where a session's end is not answered it ended.
    TakesSilenceForAnEnd,
    /// It opens a session for an on.
    OpensForAnOn,
    /// It declares less than the device keeps a session.
    DeclaresLess,
    /// It declares less the longer a call may take.
    DeclaresLessForMore,
    /// A request is as old as its last copy.
    RenewsItsQuestion,
    /// What was not answered did not happen.
    TakesSilenceForNothing,
    /// What was refused was taken.
    TakesRefusals,
    /// A refusal is as old as the device.
    MisdatesRefusals,
    /// It waits for no answer as long as one may take.
    HasNoPatience,
    /// An off that was taken is sent once more.
    SendsAnotherOff,
    /// After an error it asks nothing more.
    LocksItselfOut,
    /// A refusal is an error like any other.
    HidesRefusals,
    /// After a refusal an Off is none.
    DoubtsAfterRefusals,
    /// It never asks for the permit.
    AsksNobody,
    /// It asks for the permit when it is called, and not again.
    AsksOnce,
    /// It holds where it is asked what a hold would change.
    HoldsWhereItLooks,
    /// While a call is under way another one is refused.
    RefusesCompany,
    /// A caller that leaves leaves it shut.
    StaysShut,
    /// A session of its own for each question.
    OpensForEachQuestion,
    /// What was found is not put back.
    PutsNothingBack,
    /// It holds nothing, and says that it does.
    ClaimsAHold,
    /// It does not see what stands of a hold.
    SeesNoHold,
    /// It asks whose machine it is once.
    CachesIdentity,
    /// It does not say in which of its lives it said whose machine it is.
    TellsNoLife,
    /// It sends whatever it is told to in whichever life.
    GoesInAnyLife,
    /// It says whose machine it is without asking.
    MakesUpIdentity,
    /// It says that it ended a session which somebody else opened.
    EndsNobodysSession,
    /// It says that its sessions have names, and tells none.
    NamesNoSession,
    /// Wrong credentials are as if nobody were there.
    CallsWrongCredentialsSilence,
    /// Its debug print has its password.
    PrintsItsPassword,
    /// The root volume may go.
    LetsTheRootGo,
    /// The root volume is none.
    HidesTheRoot,
    /// It goes on to tell the volumes that it told first.
    CachesVolumes,
    /// What was told to go is not told any more, wherever it is.
    HidesWhatGoes,
    /// A detach is taken and never sent.
    SendsNoDetach,
    /// A second detach of one volume is an error.
    RefusesTwice,
    /// Its detach names another place than the volume's.
    NamesAnotherPlace,
    /// What was told to go is free.
    BelievesItsDetach,
    /// A detach takes a volume from whoever has it.
    TakesFromAnybody,
    /// It asks nobody whether a detach may be sent.
    LetsGoUnasked,
    /// No answer means that nothing is attached.
    TakesSilenceForNoVolumes,
    /// No answer means that a volume is free.
    TakesSilenceForFree,
    /// No answer means that nothing was let go.
    TakesSilenceForNoDetach,
    /// No answer means that the detach was taken.
    TakesSilenceForADetach,
}
