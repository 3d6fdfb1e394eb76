//! Rules that a test takes away, to see that the model would notice.
//!
//! Nothing in the rules themselves knows of it: what stands between the gateways of the model and the rules tells them
//! something else than is true, or does not ask them.

/// Which rule does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Weak {
    /// None is taken away.
    Nothing,
    /// S2: the judge is not told of a device's new epoch.
    Epochs,
    /// S2: the judge is told that the node was seen on before every off, and that no off found it off.
    LongWindow,
    /// S13: every device says that it controls the node, whosesoever it is.
    Whose,
    /// S13: what is sent goes in whatever life the device has by then.
    Lives,
    /// S13: what a watched device says, and the On after an on, count whosesoever it is.
    Watch,
    /// S4: the permit is made without a look.
    Look,
    /// S5: an effect leaves the ledger when it is sent, not when its end is known; all but a hold.
    Ledger,
    /// S5: the same, of the undoing of a hold alone.
    LedgerOfRestores,
    /// S5: a hold leaves the ledger when it is answered.
    LedgerOfHolds,
    /// S6: no leadership ends, and the store compares nothing.
    Leadership,
    /// S7: an unfence is taken while releases are under way.
    Unfence,
    /// S5: an attempt of a part leaves the ledger when its volume is seen free, also one that was not answered.
    LedgerOfParts,
    /// S7: a part is begun before the confirmation.
    EarlyPart,
    /// S7: whoever is asked what is attached tells one volume of two: a list that lacks one.
    OnePart,
    /// S7: what a part was told counts as done, and nobody asks for what is attached once all are over.
    LastSurvey,
    /// S5: what an attempt sets up leaves the ledger when the attempt is stored.
    Standing,
    /// K3: what was set up counts as gone although an attempt may set it up anew.
    Settled,
    /// K3: what was taken away is acted on no more.
    Lingers,
    /// S8: the far side keeps no bound.
    FarSide,
    /// S8: whoever keeps the volume acts on every copy of an attempt, where `src/release/README.md` says once per key.
    OncePerKey,
    /// S19: a receipt that was issued is not waited out.
    Receipt,
}
