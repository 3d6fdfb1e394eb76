//! Words for events.

use super::Event;

impl Event<'_> {
    /// A stable word for the event: in logs, and in the name of a point at which tests stop a process.
    ///
    /// An event that carries another one has the other one's word.
    pub fn label(&self) -> &'static str {
        match self {
            Event::Fence(_) => "fence",
            Event::Drill(_) => "drill",
            Event::Join(_) => "join",
            Event::NextLevel { .. } => "next_level",
            Event::HandOver { .. } => "hand_over",
            Event::HoldIntent { .. } => "hold_intent",
            Event::HoldEnded { .. } => "hold_ended",
            Event::OffIntent { .. } => "off_intent",
            Event::NotSent { .. } => "not_sent",
            Event::Boot(_) => "boot",
            Event::Recovered { .. } => "recovered",
            Event::Lost { .. } => "lost",
            Event::Silent { .. } => "silent",
            Event::Said { .. } => "said",
            Event::SeenOn { .. } => "seen_on",
            Event::Confirmed(_) => "confirmed",
            Event::Attest { .. } => "attest",
            Event::ReleaseSurveyed { .. } => "release_surveyed",
            Event::ReleaseIntent { .. } => "release_intent",
            Event::StandsFound { .. } => "stands_found",
            Event::Barred { .. } => "barred",
            Event::ReleaseSubject { .. } => "release_subject",
            Event::ReleaseProgress { .. } => "release_progress",
            Event::Unproven { .. } => "unproven",
            Event::Breach { .. } => "breach",
            Event::GiveUp { .. } => "give_up",
            Event::Abort { .. } => "abort",
            Event::Bar { .. } => "bar",
            Event::Hold { .. } => "hold",
            Event::Unfence { .. } => "unfence",
            Event::UnholdIntent => "unhold_intent",
            Event::Unheld { .. } => "unheld",
            Event::OnIntent { .. } => "on_intent",
            Event::SuppliesOn { .. } => "supplies_on",
            Event::Back { .. } => "back",
            Event::OnFailed { .. } => "on_failed",
            Event::CameOn { .. } => "came_on",
            Event::Closed { .. } => "closed",
            Event::Retry(_) | Event::RetrySeenOff { .. } | Event::TryAgain { .. } => "retry",
            Event::OtherSettings(_) => "other_settings",
            Event::NewTopology(_) => "new_topology",
            Event::AskedForLess { .. } => "asked_for_less",
            Event::SetAside(_) => "set_aside",
            Event::PassedOn { .. } => "passed_on",
            Event::Withdrawn { .. } => "withdrawn",
            Event::Abandon { .. } => "abandon",
            Event::StandDown(_) => "stand_down",
            Event::Retire { .. } => "retire",
            Event::Marked(_) => "marked",
            Event::Adopt { .. } => "adopt",
            Event::Read { .. } => "read_restored",
            Event::DropRestored(_) => "drop_restored",
            Event::EndChildsHold { .. } => "end_childs_hold",
            Event::LetGo { .. } => "let_go",
            Event::Resettled { .. } => "resettled",
            Event::Accepted { .. } => "accepted",
            Event::Drilled { .. } => "drilled",
            Event::Keyed { event, .. } | Event::InSessions { event, .. } | Event::After { event, .. } => {
                event.label()
            }
            Event::SoAlready => "so_already",
            Event::Learned { .. } => "learned",
            Event::IdentityTold { .. } => "identity_told",
            Event::IdentityProven { .. } => "identity_proven",
            Event::ReceiptIntent(_) => "receipt_intent",
            Event::ReceiptReturned { .. } => "receipt_returned",
        }
    }
}
