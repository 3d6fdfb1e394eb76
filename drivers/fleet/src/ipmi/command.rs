//! What is said in a session, and who may say it.

use picket_core::time::BootTime;
use picket_driver_ipmi::wire;
use picket_driver_sim::{Fault, Request as Asked, Response, Trouble, World};

use super::IpmiBmc;
use super::message::{
    BUSY, FORBIDDEN, INVALID_COMMAND, INVALID_DATA, NOT_IN_STATE, Outcome, Request, UNSPECIFIED,
    WRONG_LENGTH, spoil_sums,
};
use super::session::Stage;
use crate::account::Role;

/// No answer at all.
pub(super) struct Silence;

/// Where a command comes from.
pub(super) struct Caller<'w> {
    pub(super) world: &'w mut World,
    pub(super) now: BootTime,
    pub(super) id: u32,
    pub(super) session: picket_driver_sim::SessionId,
    pub(super) role: Role,
}

impl IpmiBmc {
    /// Answers a packet of a session.
    pub(super) fn inside(
        &mut self,
        world: &mut World,
        now: BootTime,
        datagram: &mut [u8],
    ) -> Option<Vec<u8>> {
        let id = u32::from_le_bytes(datagram.get(6..10)?.try_into().ok()?);
        let session = self.sessions.get_mut(&id)?;
        let (Stage::Active(active), Some(known)) = (&mut session.stage, session.world) else { return None };
        let opened = wire::read_sealed(datagram, &active.keys, id)?;
        let message = opened.message.to_vec();
        if !active.window.take(opened.sequence) {
            return None;
        }
        active.rakp4 = None;
        let role = active.role;
        let request = Request::read(&message)?;
        let outcome = self.execute(Caller { world: &mut *world, now, id, session: known, role }, &request);
        // What the world does not know is no session any more, and is not spoken to.
        let outcome = outcome.map_err(|Silence| ()).ok()?;
        let iv = self.bytes();
        let session = self.sessions.get_mut(&id)?;
        let Stage::Active(active) = &mut session.stage else { return None };
        active.sent = active.sent.wrapping_add(1).max(1);
        let mut answer = request.answer(&outcome);
        if world.suffers(&self.options.device, &Fault::WrongSums) {
            spoil_sums(&mut answer);
        }
        let mut out = Vec::with_capacity(128);
        wire::write_sealed(&mut out, &active.keys, session.console, active.sent, &iv, &answer);
        let over = session.closing;
        if over {
            self.sessions.remove(&id);
        }
        Some(out)
    }

    fn execute(&mut self, mut caller: Caller<'_>, request: &Request<'_>) -> Result<Outcome, Silence> {
        if caller.role < least(request) {
            return caller.touch(self).map(|touched| touched.and(Err(FORBIDDEN)));
        }
        match (request.netfn, request.cmd) {
            (0x00, _) => self.chassis(&mut caller, request),
            (0x06, 0x22..=0x25) => self.watchdog(&mut caller, request),
            (0x06, 0x3C) => self.close(&mut caller, request.data),
            // Get System GUID (§22.14): whose machine it is says the world, where another one may stand by now.
            (0x06, 0x37) => Ok(caller.ask(self, &Asked::Identify)?.and_then(|said| match said {
                Response::Identity(identity) => Ok(super::guid(identity.uuid.as_deref()).to_vec()),
                _ => Err(UNSPECIFIED),
            })),
            _ => Ok(caller.touch(self)?.and_then(|()| self.application(&mut caller, request))),
        }
    }

    /// What is answered without the world.
    fn application(&mut self, caller: &mut Caller<'_>, request: &Request<'_>) -> Outcome {
        if let Some(outcome) = self.public(request) {
            return outcome;
        }
        match (request.netfn, request.cmd) {
            // Get Device ID (§20.1): no sensors, no events, a chassis device; IPMI 2.0.
            (0x06, 0x01) => Ok(vec![0x20, 0x01, 0x01, 0x00, 0x02, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
            // Get Device GUID (§20.8).
            (0x06, 0x08) => Ok(self.guid.to_vec()),
            (0x06, 0x3B) => self.set_privilege(caller, request.data),
            (0x06, 0x3D) => self.session_info(caller, request.data),
            _ => Err(INVALID_COMMAND),
        }
    }

    /// Set Session Privilege Level (§22.18).
    fn set_privilege(&mut self, caller: &Caller<'_>, data: &[u8]) -> Outcome {
        let &[level] = data else { return Err(WRONG_LENGTH) };
        let session = self.sessions.get_mut(&caller.id).ok_or(UNSPECIFIED)?;
        let Stage::Active(active) = &mut session.stage else { return Err(UNSPECIFIED) };
        match level & 0x0F {
            // "No change": tells the present one.
            0 => {}
            level => match Role::from_level(level) {
                Some(role) if role <= active.most => active.role = role,
                // "Requested level exceeds channel or user privilege limit".
                Some(_) => return Err(0x81),
                // "Requested level not available for this user".
                None => return Err(0x80),
            },
        }
        Ok(vec![active.role as u8])
    }

    /// Close Session (§22.19), one's own; another's wants administrator.
    fn close(&mut self, caller: &mut Caller<'_>, data: &[u8]) -> Result<Outcome, Silence> {
        let Some(Ok(id)) = data.get(..4).map(<[u8; 4]>::try_from).filter(|_| data.len() == 4) else {
            return Ok(caller.touch(self)?.and(Err(WRONG_LENGTH)));
        };
        let id = u32::from_le_bytes(id);
        if id != caller.id {
            return Ok(caller.touch(self)?.and_then(|()| {
                if caller.role < Role::Administrator {
                    return Err(FORBIDDEN);
                }
                // "Invalid session id in request".
                self.sessions.get(&id).ok_or(0x87_u8)?;
                self.give_up(caller.world, caller.now, id);
                self.late = caller.world.late_end(&self.options.device);
                Ok(Vec::new())
            }));
        }
        let closed = caller.ask(self, &Asked::Close)?;
        if let Some(session) = self.sessions.get_mut(&id).filter(|_| closed.is_ok()) {
            session.closing = true;
            self.late = caller.world.late_end(&self.options.device);
        }
        Ok(closed.map(|_| Vec::new()))
    }

    /// Get Session Info (§22.20): of the asking session (0), of one by its number among the open ones, or by its id (0xFF).
    fn session_info(&mut self, caller: &mut Caller<'_>, data: &[u8]) -> Outcome {
        self.reap(caller.world, caller.now);
        let (most, _) = caller.world.session_limits(&self.options.device);
        let open: Vec<u32> = self
            .sessions
            .iter()
            .filter(|(_, session)| matches!(session.stage, Stage::Active(_)))
            .map(|(id, _)| *id)
            .collect();
        let wanted = match *data {
            [0] => Some(caller.id),
            [0xFF, a, b, c, d] => Some(u32::from_le_bytes([a, b, c, d])),
            [0xFE, handle] | [handle] => {
                usize::from(handle).checked_sub(1).and_then(|at| open.get(at)).copied()
            }
            _ => return Err(INVALID_DATA),
        };
        let mut out = vec![0, most.min(63) as u8, open.len().min(63) as u8];
        let found = wanted.and_then(|id| open.iter().position(|other| *other == id));
        if let (Some(at), Some(Stage::Active(active))) =
            (found, wanted.and_then(|id| self.sessions.get(&id)).map(|session| &session.stage))
        {
            out[0] = at.min(254) as u8 + 1;
            // User 2, its present level, IPMI 2.0 on channel 1; addresses and ports are not told.
            out.extend_from_slice(&[2, active.role as u8, 0x11]);
        }
        Ok(out)
    }
}

impl Caller<'_> {
    /// Asks the world in this session; a trouble becomes its completion code, or silence.
    pub(super) fn ask(&mut self, bmc: &mut IpmiBmc, asked: &Asked) -> Result<Result<Response, u8>, Silence> {
        let answer = self.world.hand(self.now, &bmc.options.device, Some(self.session), asked);
        Ok(match answer {
            Ok(response) => Ok(response),
            Err(Trouble::NoSession) => {
                bmc.sessions.remove(&self.id);
                return Err(Silence);
            }
            Err(Trouble::Silence) => return Err(Silence),
            Err(Trouble::Busy) => Err(BUSY),
            Err(Trouble::AlreadySo) => Err(NOT_IN_STATE),
            Err(Trouble::Forbidden) => Err(FORBIDDEN),
            Err(Trouble::Unsupported) => Err(INVALID_COMMAND),
            Err(Trouble::Refused | Trouble::Password | Trouble::SessionsFull) => Err(UNSPECIFIED),
        })
    }

    /// Lets the world hear that the session is alive.
    pub(super) fn touch(&mut self, bmc: &mut IpmiBmc) -> Result<Result<(), u8>, Silence> {
        Ok(self.ask(bmc, &Asked::Touch)?.map(|_| ()))
    }
}

/// The least that one must be to say this (IPMI 2.0 appendix G).
fn least(request: &Request<'_>) -> Role {
    match (request.netfn, request.cmd) {
        // Chassis control, restore policy, boot options; the watchdog is set.
        (0x00, 0x02 | 0x06 | 0x08 | 0x09) | (0x06, 0x22 | 0x24) => Role::Operator,
        // Front panel enables.
        (0x00, 0x0A) => Role::Administrator,
        _ => Role::User,
    }
}
