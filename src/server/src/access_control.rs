//! Access control: what a reload changes of roles, limits and certificates, and how they are now.

use std::sync::Arc;

use picket_core::roles::Roles;
use picket_engine::Engine;
use tokio_util::sync::CancellationToken;

use crate::admission::{AdmissionControl, Limits};
use crate::guard::{AccessRules, Guard};
use crate::listen::Listeners;
use crate::tls::Tls;

/// Who may what, how much, and how much of it is taken. Cheap to clone; all clones are the same access control.
#[derive(Clone, Debug)]
pub struct AccessControl {
    pub(crate) guard: Arc<Guard>,
    pub(crate) admission: Arc<AdmissionControl>,
    tls: Option<Arc<Tls>>,
}

impl AccessControl {
    /// By these rules, before that engine, with the certificates of these listeners, until `stop`.
    pub fn new(rules: AccessRules, engine: &Engine, listeners: &Listeners, stop: CancellationToken) -> Self {
        let limits = rules.limits.clone();
        let guard = Arc::new(Guard::new(rules, engine.clock().clone()));
        let admission = Arc::new(AdmissionControl::new(&limits, guard.clone(), stop));
        Self { guard, admission, tls: listeners.tls.clone() }
    }

    /// Other limits and roles from now on. Where the roles differ, streams are ended: whoever comes again is judged anew.
    /// Places that are taken already do not count against changed limits. How many connections there may be in all stays
    /// as it was.
    pub fn change(&self, limits: Limits, roles: Roles) {
        self.guard.rate_limits.change(&limits);
        self.admission.change(&limits);
        if self.guard.change(roles) {
            self.admission.end_streams();
        }
    }

    /// Streams that are open, and calls that are being answered.
    pub fn open(&self) -> (usize, usize) {
        self.admission.open()
    }

    /// The certificates, by what they are for, and when they end, in seconds since 1970: the gateway's own (`server`),
    /// and the one of the CAs for callers that ends first (`client_ca`).
    pub fn certificates(&self) -> Vec<(&'static str, i64)> {
        self.tls.as_ref().map(|tls| tls.ends()).unwrap_or_default()
    }

    /// Reads the certificates again if their files changed; true if new ones are used from now on.
    pub fn read_certificates_again(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.look_again())
    }
}
