//! Pause and Resume.

use picket_core::budget::pause::{Pause, PauseScope};
use picket_proto::v1::{self, ErrorReason};
use tonic::Status;

use super::FencingHandlers;
use crate::admission::AuthenticatedCaller;
use crate::convert::{pause, request};
use crate::errors;
use crate::fault::Fault;
use crate::select::{NodeTarget, group_members};

impl FencingHandlers {
    /// From now on no new fence starts within the scope.
    pub(crate) async fn pause(
        &self,
        caller: AuthenticatedCaller,
        request: v1::PauseRequest,
    ) -> Result<v1::PauseResponse, Status> {
        let (asked, lasts) = self.heard(&caller, "pause", request::pause::pause(&request, &caller.name))?;
        self.heard(&caller, "pause", self.may_scope(&asked.scope))?;
        let paused = self.engine.pause(asked.scope, asked.person, lasts).await.map_err(errors::asked)?;
        Ok(v1::PauseResponse { pause: Some(pause::pause(&paused)) })
    }

    /// Ends a pause early; of everything, the brake as well.
    pub(crate) async fn resume(
        &self,
        caller: AuthenticatedCaller,
        request: v1::ResumeRequest,
    ) -> Result<v1::ResumeResponse, Status> {
        let asked = self.heard(&caller, "resume", request::pause::resume(&request, &caller.name))?;
        let scope = asked.scope;
        self.heard(&caller, "resume", self.may_scope(&scope))?;
        let ended = self.engine.resume(scope.clone(), asked.person).await.map_err(errors::asked)?;
        let left: Vec<Pause> =
            self.engine.pauses().into_iter().filter(|pause| self.may_hear_of(&pause.scope)).collect();
        if !ended.pause && !ended.brake {
            let others: Vec<String> = left.iter().map(|pause| pause.scope.to_string()).collect();
            let hint = match others.as_slice() {
                [] => "nothing is paused".to_owned(),
                others => format!("paused is {}", others.join(", ")),
            };
            let message = format!("{scope} is not paused: {hint}");
            return Err(Fault::new(ErrorReason::PauseNotFound, message)
                .resource("pause", &scope.to_string())
                .into());
        }
        Ok(self.hiding(v1::ResumeResponse { pauses: left.iter().map(pause::pause).collect() }))
    }

    /// Whether the caller may be told of a pause of that scope: some node of it is one that it may look at.
    fn may_hear_of(&self, scope: &PauseScope) -> bool {
        match scope {
            PauseScope::Everything => true,
            PauseScope::Group(name) => {
                let groups = self.engine.groups();
                groups.members(name).is_some_and(|nodes| nodes.iter().any(|node| self.knows(node)))
            }
            PauseScope::Node(node) => self.knows(node),
        }
    }

    /// Refuses a scope that has a node for which the caller may not pause.
    fn may_scope(&self, scope: &PauseScope) -> Result<(), Fault> {
        self.leads()?;
        match scope {
            PauseScope::Everything => self.may_everything(),
            PauseScope::Group(name) => self.may_all_of(name, &group_members(self, name)?),
            PauseScope::Node(node) => NodeTarget::Name(node.clone()).find(self).map(drop),
        }
    }
}
