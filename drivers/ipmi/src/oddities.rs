//! Oddities of BMCs against the specification that the driver bears: nothing weaker is believed for them. Each is told once, and by each check.

use std::sync::atomic::{AtomicBool, Ordering};

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Oddity {
    /// The sums in its messages are wrong, where the code over all of the packet is right (IPMI 2.0 §13.8).
    Sums,
    /// It makes codes and keys with the privilege of Open Session, not with the role of RAKP 1 (IPMI 2.0 §13.31); FreeIPMI's
    /// workaround `opensesspriv`.
    Privilege,
}

impl Oddity {
    const ALL: [Oddity; 2] = [Oddity::Sums, Oddity::Privilege];

    fn words(self) -> &'static str {
        match self {
            Oddity::Sums => {
                "the BMC signs its messages rightly and sums them up wrongly: its firmware has a fault, and an update may mend it"
            }
            Oddity::Privilege => {
                "the BMC makes the keys of a session with another privilege than IPMI 2.0 asks for (FreeIPMI's workaround \
                 opensesspriv): its firmware has a fault, and an update may mend it"
            }
        }
    }
}

/// Those of one BMC.
#[derive(Debug, Default)]
pub struct Oddities([AtomicBool; Oddity::ALL.len()]);

impl Oddities {
    /// It was seen at that address.
    pub fn see(&self, oddity: Oddity, address: impl FnOnce() -> String) {
        if !self.0[oddity as usize].swap(true, Ordering::Relaxed) {
            tracing::warn!(endpoint = %address(), "{}", oddity.words());
        }
    }

    /// All that were seen, each a sentence.
    pub fn remarks(&self) -> Vec<String> {
        let seen = Oddity::ALL.into_iter().filter(|oddity| self.0[*oddity as usize].load(Ordering::Relaxed));
        seen.map(|oddity| oddity.words().to_owned()).collect()
    }
}
