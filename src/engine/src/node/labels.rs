//! Words for events.

use picket_core::event::Event;

/// A stable word for an event: in logs, and as the name of a point.
pub(super) fn event_label(event: &Event<'_>) -> &'static str {
    match event {
        Event::Fence(_) => "fence",
        Event::Drill(_) => "drill",
        Event::Join { .. } => "join",
        Event::NextLevel { .. } => "next_level",
        Event::HandOver { .. } => "hand_over",
        Event::HoldIntent { .. } => "hold_intent",
        Event::HoldEnded { .. } => "hold_ended",
        Event::OffIntent { .. } => "off_intent",
        Event::Lost { .. } => "lost",
        Event::Silent { .. } => "silent",
        Event::Said { .. } => "said",
        Event::SeenOn { .. } => "seen_on",
        Event::Confirmed(_) => "confirmed",
        Event::Attest { .. } => "attest",
        Event::ReleaseSurveyed { .. } => "release_surveyed",
        Event::ReleaseIntent { .. } => "release_intent",
        Event::StandsFound { .. } => "stands_found",
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
        Event::Closed { .. } => "closed",
        Event::Retry(_) | Event::RetrySeenOff { .. } => "retry",
        Event::PassedOn { .. } => "passed_on",
        Event::Withdrawn { .. } => "withdrawn",
        Event::Abandon { .. } => "abandon",
        Event::StandDown(_) => "stand_down",
        Event::Retire { .. } => "retire",
        Event::Marked(_) => "marked",
        Event::Adopt { .. } => "adopt",
        Event::Read { .. } => "read_restored",
        Event::DropRestored(_) => "drop_restored",
        Event::Resettled { .. } => "resettled",
        Event::Accepted { .. } => "accepted",
        Event::Drilled { .. } => "drilled",
        Event::Keyed { event, .. } | Event::InSessions { event, .. } | Event::After { event, .. } => {
            event_label(event)
        }
        Event::SoAlready => "so_already",
        Event::Learned { .. } => "learned",
        Event::IdentityProven { .. } => "identity_proven",
        Event::ReceiptIntent(_) => "receipt_intent",
        Event::ReceiptReturned { .. } => "receipt_returned",
    }
}
