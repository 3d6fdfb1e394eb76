//! Access control by the settings: certificates, roles, limits, and who is told of denials.

use std::sync::Arc;

use picket_audit::{Audit, Told};
use picket_config::{Fault, Settings};
use picket_core::time::Clock;
use picket_engine::clock::SystemClock;
use picket_metrics::Metrics;
use picket_server::{AccessRules, Denial, DenialSink, Limits, Listeners, Tls, TlsFiles};
use serde_json::json;

/// What TLS is spoken with, if it is.
pub(crate) fn tls(settings: &Settings, faults: &mut Vec<Fault>) -> Option<Tls> {
    let tls = settings.listen.tls.as_ref()?;
    let files = TlsFiles {
        certificate: tls.cert_file.clone(),
        key: tls.key_file.clone(),
        client_ca: tls.client_ca_file.clone(),
    };
    match Tls::load(files) {
        Ok(loaded) => Some(loaded),
        Err(wrong) => {
            faults.extend(wrong.into_iter().map(|fault| tls.fault(fault.key, fault.message)));
            None
        }
    }
}

/// Who may what, and how much.
pub(crate) fn rules(settings: &Settings, audit: Audit, metrics: &Metrics) -> AccessRules {
    AccessRules {
        limits: limits(settings),
        roles: settings.roles.clone(),
        denials: Arc::new(Noted(audit)),
        metrics: metrics.clone(),
    }
}

/// How much is taken in.
pub(crate) fn limits(settings: &Settings) -> Limits {
    let limits = &settings.limits;
    Limits {
        calls: limits.calls as usize,
        calls_each: limits.calls_each as usize,
        streams: limits.streams as usize,
        streams_each: limits.streams_each as usize,
        connections: limits.connections as usize,
        connections_each: limits.connections_each as usize,
        callers: limits.callers as usize,
        rate: limits.rate,
        burst: limits.burst,
        ..Limits::default()
    }
}

/// Says where callers are listened to, and who may call.
pub(crate) fn tell(settings: &Settings, listeners: &Listeners, is_guarded: bool) {
    if let Some(path) = &settings.listen.unix {
        tracing::info!(path = %path.display(), "listening on a Unix socket");
    }
    if let Some(address) = listeners.tcp_address() {
        tracing::info!(%address, tls = is_guarded, "listening on TCP");
        if !is_guarded && settings.roles.is_of_this_machine() {
            tracing::warn!(
                %address,
                "without TLS and without [roles] every program on this machine, of whatever user, is admin here"
            );
        }
    }
}

/// Denials in the log and in the audit, as the server gathered them.
#[derive(Debug)]
struct Noted(Audit);

impl DenialSink for Noted {
    fn denied(&self, denial: &Denial) {
        let Denial { caller, shown, call, reason, detail, count } = denial;
        let mut details = json!({ "call": call, "reason": reason, "detail": detail, "count": count });
        if let Some(shown) = shown {
            details["person"] = json!(&**shown);
        }
        self.0.tell(Told {
            at: SystemClock.wall().millis(),
            who: caller.clone(),
            what: "denied".to_owned(),
            details,
            ..Told::default()
        });
        tracing::warn!(
            target: "audit",
            caller = denial.caller,
            person = denial.shown.as_deref(),
            call = denial.call,
            reason = denial.reason,
            detail = denial.detail,
            count = denial.count,
            "denied"
        );
    }
}
