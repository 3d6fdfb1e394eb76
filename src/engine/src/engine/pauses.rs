//! Pausing and resuming, and what the office can tell.

use std::sync::Arc;
use std::time::Duration;

use picket_audit::Told;
use picket_core::budget::Bar;
use picket_core::budget::pause::{Pause, PauseScope};
use picket_core::election::Leadership;
use picket_core::event::Person;
use picket_core::ids::NodeId;
use serde_json::{Map, Value};

use super::Engine;
use crate::error::EngineError;
use crate::office::{OfficeNumbers, Resumed};

impl Engine {
    fn leadership(&self) -> Result<Arc<Leadership>, EngineError> {
        self.led().map_err(EngineError::NoLeader)
    }

    /// From now on no new fence starts within the scope, for so long. Fences that have sent an off, and breaches, go on. Whoever asks and
    /// leaves has it all the same.
    pub async fn pause(
        &self,
        scope: PauseScope,
        person: Person,
        lasts: Duration,
    ) -> Result<Pause, EngineError> {
        let (engine, leadership, who) = (self.clone(), self.leadership()?, person.clone());
        self.to_its_end(async move {
            let (store, right) = (&*engine.shared.parts.store, engine.acting.right.as_ref());
            let office = &engine.shared.office;
            let paused = office.pause((store, &leadership), right, scope.clone(), person, lasts).await;
            let how = match &paused {
                Ok(pause) => Ok(format!("paused until {}", pause.expires_at)),
                Err(error) => Err(error.to_string()),
            };
            engine.told("pause", &who, &scope, how);
            paused
        })
        .await
    }

    /// Ends a pause; of everything, the brake as well.
    pub async fn resume(&self, scope: PauseScope, person: Person) -> Result<Resumed, EngineError> {
        let (engine, leadership) = (self.clone(), self.leadership()?);
        self.to_its_end(async move {
            let (store, right) = (&*engine.shared.parts.store, engine.acting.right.as_ref());
            let resumed = engine.shared.office.resume((store, &leadership), right, &scope).await;
            let how = match &resumed {
                Ok(Resumed { pause: false, brake: false }) => {
                    Err("nothing of that scope is paused".to_owned())
                }
                Ok(Resumed { brake: true, .. }) => Ok("resumed, and the brake let go".to_owned()),
                Ok(_) => Ok("resumed".to_owned()),
                Err(error) => Err(error.to_string()),
            };
            engine.told("resume", &person, &scope, how);
            resumed
        })
        .await
    }

    /// Does it to its end, also where whoever asked hangs up: half of it would be a pause that is stored, and holds for nobody.
    async fn to_its_end<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, EngineError>> + Send + 'static,
    ) -> Result<T, EngineError> {
        tokio::spawn(work).await.unwrap_or(Err(EngineError::Unanswered))
    }

    fn told(&self, call: &str, person: &Person, scope: &PauseScope, how: Result<String, String>) {
        let parts = &self.shared.parts;
        let (outcome, how) = match how {
            Ok(how) => ("accepted", how),
            Err(why) => ("refused", why),
        };
        tracing::info!(call, caller = person.name, %scope, reason = person.reason, outcome, how, "a person asks");
        let words = [
            ("call", call.to_owned()),
            ("scope", scope.to_string()),
            ("reason", person.reason.clone()),
            ("outcome", outcome.to_owned()),
            ("how", how),
        ];
        let shown = self.acting.shown().map(|shown| ("person", shown.to_owned()));
        let words = words.into_iter().chain(shown);
        let details: Map<String, Value> =
            words.map(|(name, value)| (name.to_owned(), value.into())).collect();
        let node = match scope {
            PauseScope::Node(node) => Some(node.to_string()),
            PauseScope::Everything | PauseScope::Group(_) => None,
        };
        parts.audit.tell(Told {
            at: parts.clock.wall().millis(),
            who: person.name.clone(),
            what: "request".to_owned(),
            node,
            details: Value::Object(details),
            ..Told::default()
        });
    }

    /// The pauses that stand.
    pub fn pauses(&self) -> Vec<Pause> {
        self.shared.office.pauses()
    }

    /// Those of them that cover a node.
    pub fn pauses_of(&self, node: &NodeId) -> Vec<Pause> {
        self.slot(node).map(|slot| self.shared.office.covering(&slot.plan)).unwrap_or_default()
    }

    /// The pause, the cool-down or the limit that bars a fence of that node now, for whoever looks on. The brake is told by
    /// [`Engine::braked`].
    pub fn standing_bar(&self, node: &NodeId) -> Option<Bar> {
        self.shared.office.standing_bar(node)
    }

    /// Why the brake holds, if it does.
    pub fn braked(&self) -> Option<Bar> {
        self.shared.office.braked()
    }

    /// How many fences are open, requests wait and pauses stand.
    pub fn office_numbers(&self) -> OfficeNumbers {
        self.shared.office.numbers()
    }
}
