//! A node that the settings do not know any more, or know elsewhere, and that is not back. And: a task that
//! makes room for another plan.
//!
//! # Invariants
//!
//! - Its holds stay, and nothing is sent to it. Shown by
//!   `an_orphan_is_shown_and_left_alone_until_its_settings_are_back`.
//! - What its releases set up is taken away by the settings of now. Shown by
//!   `what_stands_of_an_orphan_is_taken_away_and_nothing_else_is_sent`.

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use picket_core::event::Event;
use picket_core::outcome::Reason;

use super::command::{Command, Wish};
use super::hands::Doing;
use super::watching::TAKEN_BACK;
use super::{Fatal, NodeTask};
use crate::error::EngineError;
use crate::parents::ParentAsk;

impl NodeTask {
    /// Answers callers until a person retires the node, or the settings have it back.
    pub(super) async fn orphaned(&mut self, why: &str) -> Result<(), Fatal> {
        self.wait_for(format!("a person: {why}; put its settings back, or retire it"), "an operator", None);
        let here = self.place();
        self.office.is_left_alone(&self.record().node);
        loop {
            let version = self.stored.version;
            self.ends_holds_as_an_orphan().await?;
            if self.stored.version != version {
                self.office.is_left_alone(&self.record().node);
            }
            if self.place() != here || self.aside.is_asked() {
                return Ok(());
            }
            let command = tokio::select! {
                biased;
                command = self.mailbox.recv() => command,
                () = tokio::time::sleep(self.parts.rules.watch) => continue,
            };
            let Some(command) = command else { return Ok(()) };
            if command.serves_orphans() {
                self.command(command).await?;
                // What was stored counts it anew.
                self.office.is_left_alone(&self.record().node);
                continue;
            }
            let refused = EngineError::Blocked {
                reason: Reason::Orphaned,
                detail: format!(
                    "{} is ORPHANED: {why}; nothing is sent to it: put its settings back, or retire it",
                    self.plan.id
                ),
            };
            if let Some(asked) = command.asked() {
                self.teller.request(asked, &self.stored.record, Err(refused.to_string()), false);
            }
            command.refuse(&self.stored.record, &refused);
        }
    }

    /// Nobody watches an orphan: it sees neither that an admin of the machine on which it runs took that back, nor that a child of its own let it
    /// go. Both keep another node off for as long as nobody says so (S22).
    async fn ends_holds_as_an_orphan(&mut self) -> Result<(), Fatal> {
        // What is open no longer keeps the machine on which it runs off.
        self.close_expired(|kind| kind.bars_on() && kind.device().is_none()).await?;
        if self.is_taken_back() {
            self.persist(|| Event::Unproven { why: TAKEN_BACK.to_owned(), seen: true }).await?;
        }
        self.drop_holds_of_the_gone().await
    }

    /// Whether this task is to end now, so that another one goes on with the node.
    pub(super) fn steps_aside(&self) -> bool {
        self.aside.is_asked() && (self.orphan.is_some() || self.record().takes_other_settings())
    }

    /// Ends the sessions of devices that the next plan may not know.
    pub(super) async fn leave(&self) {
        if self.aside != Aside::PlanGoes {
            return;
        }
        let mut closing: FuturesUnordered<Doing> = self
            .plan
            .topology
            .devices()
            .filter(|spec| self.plan.drivers.contains_key(&spec.id))
            .map(|spec| self.hands.quiesce(&spec.id, spec.call))
            .collect();
        while closing.next().await.is_some() {}
    }
}

/// Whether a task was asked to make room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Aside {
    #[default]
    No,
    /// Its plan stays: other rules.
    Asked,
    /// Its plan goes.
    PlanGoes,
}

impl Aside {
    pub(super) fn is_asked(self) -> bool {
        self != Aside::No
    }

    pub(super) fn ask(&mut self, plan_goes: bool) {
        *self = if plan_goes || *self == Aside::PlanGoes { Aside::PlanGoes } else { Aside::Asked };
    }
}

impl Command {
    /// Whether it is possible where nothing can be sent.
    fn serves_orphans(&self) -> bool {
        match self {
            Command::As(_, command) => command.serves_orphans(),
            Command::Wish(Wish::Retire | Wish::EndChildsHold(_), ..) | Command::Abandon(..) => true,
            Command::ReturnReceipt { .. } | Command::VerifyReceipt { .. } => true,
            // What its releases set up lets volumes go of a machine that nobody watches: it is taken away, wherever its devices are (K3).
            Command::Withdrawn(_) => true,
            // Nothing is sent for it: its child is brought back, and waits for nobody who retires this one.
            Command::Parent(ParentAsk::LetGo { .. } | ParentAsk::Settle, ..) => true,
            command => matches!(command, Command::Check(_) | Command::StepAside { .. }),
        }
    }
}
