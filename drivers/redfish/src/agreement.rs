//! Whether a manager's `LastResetTime` shows its restarts where no setting says so (S2): what looks at checks came to.

use std::time::Duration;

use picket_core::time::BootTime;
use tokio::time::Instant;

use crate::manager_life::ManagerLife;

/// Two looks agree only where so much time lies between them: what drifts shows that by then.
const APART: Duration = Duration::from_secs(2);
/// A manager that does not say it is asked again after so long, and at each check.
const UNSAID: Duration = Duration::from_secs(30);

/// What a manager that is not believed means for a fence, in words.
/// A life that is said to be longer, in days, is not believed. Managers without a battery begin at the date of their firmware.
const LONGEST: i64 = 365;

const TAKEN: &str = "it is taken as one without epochs, and Off must hold for the long window";

/// What is known of it.
#[derive(Debug, Default)]
pub struct Agreement {
    /// It said it: from then on a reading without is none.
    pub said: bool,
    /// It does not say it until then.
    unsaid_until: Option<Instant>,
    /// The first look at the life of now at a check, and when.
    first: Option<(ManagerLife, BootTime)>,
    agreed: bool,
    /// Why it is not believed, in words.
    pub wrong: Option<String>,
    /// Something that it said once showed that it tells no restart: nothing that it says later is believed.
    is_unfit: bool,
}

impl Agreement {
    /// Whether two looks agreed, and nothing makes it unfit.
    pub fn stands(&self) -> bool {
        self.agreed && !self.is_unfit
    }

    /// Whether there is nothing to ask for.
    pub fn is_off(&self) -> bool {
        self.is_unfit || self.unsaid_until.is_some_and(|until| Instant::now() < until)
    }

    /// Whether it says it, and that is believed as far as is known.
    pub fn is_on(&self) -> bool {
        self.said && !self.is_unfit
    }

    /// It does not say it now.
    pub fn is_unsaid(&mut self) {
        self.unsaid_until = Some(Instant::now() + UNSAID);
    }

    /// It is asked whether or not it said it before.
    pub fn ask_anew(&mut self) {
        self.unsaid_until = None;
    }

    /// At a check: it says it no more, or so that it shows nothing.
    pub fn is_withdrawn(&mut self) {
        (self.said, self.agreed, self.first) = (false, false, None);
        self.is_unsaid();
    }

    /// What it says shows a restart.
    pub fn is_right(&mut self) {
        self.is_wrong(None);
    }

    /// What it says shows none, for this reason; `None`: it says nothing. What makes it unfit stays told.
    pub fn is_wrong(&mut self, why: Option<&str>) {
        if !self.is_unfit {
            self.wrong = why.map(|why| format!("{why}: {TAKEN}"));
        }
    }

    /// Takes a look at a check.
    pub fn take(&mut self, found: &ManagerLife, at: BootTime) {
        let Some(days) = found.days() else {
            // Not for ever: it may say it once its clock is set.
            self.is_wrong(Some("its manager does not say its DateTime, without which a LastResetTime of years ago looks like one of now"));
            (self.agreed, self.first) = (false, None);
            return;
        };
        if days > LONGEST {
            let reset = found.reset();
            self.is_wrong(Some(&format!(
                "its LastResetTime is {reset}, {days} days before its present time: a clock that begins there at each start, and is set \
                 right later, says the same after a restart"
            )));
            self.is_unfit = true;
            return;
        }
        let Some((first, since)) = &self.first else {
            self.first = Some((found.clone(), at));
            return;
        };
        let elapsed = at.since(*since);
        if first.goes_on_in(found, elapsed) {
            self.agreed |= elapsed >= APART;
        } else if first.drifts_to(found, elapsed) {
            let (before, after) = (first.reset(), found.reset());
            self.is_wrong(Some(&format!(
                "its LastResetTime drifts ({before}, then {after}, and it did not restart)"
            )));
            self.is_unfit = true;
        } else {
            self.agreed = false;
            self.first = Some((found.clone(), at));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(manager: serde_json::Value) -> ManagerLife {
        ManagerLife::read(manager.as_object().expect("an object")).expect("a life").expect("it says it")
    }

    fn life(reset: &str, second: u64) -> ManagerLife {
        let now = format!("2026-11-23T00:{:02}:{:02}Z", second / 60, second % 60);
        read(json!({ "LastResetTime": reset, "DateTime": now }))
    }

    fn looks(looks: &[(&str, u64)]) -> Agreement {
        let mut agreement = Agreement { said: true, ..Agreement::default() };
        for (reset, second) in looks {
            agreement.take(&life(reset, *second), BootTime::default() + Duration::from_secs(*second));
        }
        agreement
    }

    const BEGUN: &str = "2026-11-22T01:00:00Z";

    #[test]
    fn two_looks_that_are_apart_agree() {
        assert!(!looks(&[(BEGUN, 10)]).stands());
        assert!(!looks(&[(BEGUN, 10), (BEGUN, 11)]).stands());
        assert!(looks(&[(BEGUN, 10), (BEGUN, 11), (BEGUN, 12)]).stands());
    }

    /// A manager without a battery begins at its firmware's date, notes that, and is set right by NTP: it says so after each restart.
    #[test]
    fn a_reset_years_before_its_present_time_is_told_and_not_believed() {
        let take = |agreement: &mut Agreement, now: &str, second| {
            let life = read(json!({ "LastResetTime": BEGUN, "DateTime": now }));
            agreement.take(&life, BootTime::default() + Duration::from_secs(second));
        };
        let mut agreement = Agreement { said: true, ..Agreement::default() };
        take(&mut agreement, "2027-11-22T01:00:00Z", 10);
        take(&mut agreement, "2027-11-22T01:00:50Z", 60);
        assert!(agreement.stands(), "a year is believed");
        take(&mut agreement, "2027-11-23T01:00:00Z", 86_410);
        assert!(!agreement.stands() && !agreement.is_on());
        let told = agreement.wrong.expect("told");
        assert!(told.contains("366 days before its present time") && told.contains("long window"), "{told}");
    }

    #[test]
    fn after_a_restart_two_more_have_to_agree() {
        let restarted = "2026-11-22T02:00:00Z";
        let agreement = looks(&[(BEGUN, 10), (BEGUN, 60), (restarted, 120)]);
        assert!(!agreement.stands() && agreement.is_on() && agreement.wrong.is_none());
        assert!(looks(&[(BEGUN, 10), (BEGUN, 60), (restarted, 120), (restarted, 180)]).stands());
    }

    #[test]
    fn what_drifted_once_is_told_and_not_believed_again() {
        let mut agreement = looks(&[(BEGUN, 10), (BEGUN, 60), ("2026-11-22T01:00:01Z", 120), (BEGUN, 180)]);
        assert!(!agreement.stands() && !agreement.is_on() && agreement.is_off());
        let told = agreement.wrong.clone().expect("told");
        assert!(told.contains("drifts (2026-11-22T01:00:00Z, then 2026-11-22T01:00:01Z"), "{told}");
        agreement.is_withdrawn();
        agreement.is_right();
        assert!(agreement.is_off() && agreement.wrong == Some(told));
    }
}
