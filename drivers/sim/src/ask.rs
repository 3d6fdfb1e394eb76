//! The one door to a device: what is asked of it, and what comes of it.

use std::time::Duration;

use picket_core::device::DeviceClass;
use picket_core::time::BootTime;

use crate::fault::{Act, Fault};
use crate::machine::Pending;
use crate::passage::Way;
use crate::wire::{Answer, Heard, HoldSettings, Request, Response, SessionId, Trouble, Verb};
use crate::world::{Event, World};

impl World {
    /// One copy of a request arrives at a device at `now`, in a session if there is one.
    pub fn ask(
        &mut self,
        now: BootTime,
        name: &str,
        session: Option<SessionId>,
        request: &Request,
    ) -> Answer {
        self.advance(now);
        let sent_to = name;
        let name = &*self.arrives_at(name);
        let silence = Answer { late_by: Duration::ZERO, what: Err(Trouble::Silence) };
        // Whoever knows of volumes does not hang on the machine's own power.
        let dead = if request.is_about_volumes() { self.is_broken(name) } else { self.is_dead(name) };
        if self.is_lost(name, Way::There) || dead {
            return silence;
        }
        self.device_mut(name).count(request);
        let what = self.consider(name, session, request);
        let changes = matches!(request, Request::Command(_) | Request::SetHold(_));
        if name != sent_to && changes && what.is_ok() {
            self.strayed.push(format!("{request:?} to {sent_to} was carried out by {name} at {now:?}"));
        }
        if self.device(name).has(|fault| matches!(fault, Fault::Doubled)) {
            self.device_mut(name).count(request);
            // Whoever asked throws the second answer away.
            let _ = self.consider(name, session, request);
        }
        let late = match request {
            Request::Close => self.late_end(name),
            Request::Command(Verb::Off) => self.late_off(name),
            _ => Duration::ZERO,
        };
        let late_by = self.device(name).late_by() + late;
        if self.is_lost(name, Way::Back) {
            return silence;
        }
        Answer { late_by, what }
    }

    /// What a device makes of one request that has arrived: [`World::ask`] without what happens on the way, for who carries
    /// real packets and asks [`World::passage`] about each.
    ///
    /// # Errors
    /// Why there is no such answer.
    pub fn hand(
        &mut self,
        now: BootTime,
        name: &str,
        session: Option<SessionId>,
        request: &Request,
    ) -> Result<Response, Trouble> {
        self.advance(now);
        let name = &*self.arrives_at(name);
        if self.is_dead(name) {
            return Err(Trouble::Silence);
        }
        self.device_mut(name).count(request);
        self.consider(name, session, request)
    }

    /// The same of a request that brings its credentials along and belongs to no session, as with HTTP's basic authentication.
    ///
    /// # Errors
    /// Why there is no such answer.
    pub fn hand_alone(&mut self, now: BootTime, name: &str, request: &Request) -> Result<Response, Trouble> {
        let before = std::mem::replace(&mut self.device_mut(name).sessionless, true);
        let answer = self.hand(now, name, None, request);
        self.device_mut(name).sessionless = before;
        answer
    }

    /// Whether that is wrong with the device.
    pub fn suffers(&self, device: &str, fault: &Fault) -> bool {
        self.device(device).has(|one| one == fault)
    }

    /// All that is wrong with the device.
    pub fn faults(&self, device: &str) -> &[Fault] {
        &self.device(device).faults
    }

    /// How much later than usual it answers the end of a session.
    pub fn late_end(&self, device: &str) -> Duration {
        let late = |fault: &Fault| if let Fault::LateEnd(by) = fault { Some(*by) } else { None };
        self.faults(device).iter().find_map(late).unwrap_or_default()
    }

    /// The same of an off.
    pub fn late_off(&self, device: &str) -> Duration {
        let late = |fault: &Fault| if let Fault::LateOff(by) = fault { Some(*by) } else { None };
        self.faults(device).iter().find_map(late).unwrap_or_default()
    }

    /// To which device a request comes that is sent to the address of that one.
    fn arrives_at(&mut self, name: &str) -> String {
        match self.leads.get_mut(name) {
            Some(lead) if lead.after == 0 => lead.to.clone(),
            Some(lead) => {
                lead.after -= 1;
                name.to_owned()
            }
            None => name.to_owned(),
        }
    }

    /// Whether nothing at all answers: no power, restarting, broken.
    pub(crate) fn is_dead(&self, name: &str) -> bool {
        let device = self.device(name);
        self.is_broken(name) || (device.class != DeviceClass::Supply && !self.machine(&device.machine).fed)
    }

    /// Whether it answers nothing also with power.
    fn is_broken(&self, name: &str) -> bool {
        let device = self.device(name);
        device.has(|fault| matches!(fault, Fault::Silent)) || self.now < device.down_until
    }

    fn consider(
        &mut self,
        name: &str,
        session: Option<SessionId>,
        request: &Request,
    ) -> Result<Response, Trouble> {
        let now = self.now;
        self.reconcile_if_it_rose(name);
        let device = self.device_mut(name);
        let enters = *request == Request::Open || device.sessionless;
        if enters && device.has(|fault| matches!(fault, Fault::WrongPassword)) {
            return Err(Trouble::Password);
        }
        if device.has(|fault| matches!(fault, Fault::Starting)) && *request != Request::Close {
            return Err(Trouble::Busy);
        }
        if *request == Request::Open {
            return self.open(name);
        }
        if let Some(answer) = self.about_volumes(name, request) {
            return answer;
        }
        let device = self.device_mut(name);
        // What belongs to no session asks for none.
        let outside = *request == Request::Touch && session.is_none();
        if !outside && !device.hears(session, now) {
            if let Request::Command(verb) = request {
                self.hear(name, session, *verb, false);
            }
            return Err(Trouble::NoSession);
        }
        let busy = device.wears(|fault| match fault {
            Fault::Busy { times } => Some(times),
            _ => None,
        });
        if busy && *request != Request::Close {
            return Err(Trouble::Busy);
        }
        match request {
            Request::Open => self.open(name),
            Request::Close => {
                if let Some(id) = session {
                    device.sessions.remove(&id);
                }
                Ok(Response::Closed)
            }
            Request::End(other) => {
                let lives_on = device.has(|fault| matches!(fault, Fault::EndsNoOther));
                if !lives_on {
                    device.sessions.remove(other);
                }
                Ok(Response::Closed)
            }
            Request::Read => Ok(self.read(name)),
            Request::Command(verb) => self.command(name, session, *verb),
            Request::Identify | Request::InspectHold
                if device.has(|fault| matches!(fault, Fault::DropsQuestions)) =>
            {
                Err(Trouble::Silence)
            }
            Request::Identify
                if device.wears(|fault| match fault {
                    Fault::SaysNoIdentity { times } => Some(times),
                    _ => None,
                }) =>
            {
                Ok(Response::Identity(picket_core::device::Identity::default()))
            }
            Request::Identify => Ok(self.identify(name)),
            Request::InspectHold => self.hold_settings(name).map(Response::Hold),
            Request::SetHold(settings) => self.set_hold(name, *settings),
            Request::Place => self.placement(name),
            Request::Touch => Ok(Response::Touched),
            // They were answered above.
            Request::Volumes | Request::Standing(_) | Request::Detach { .. } => Err(Trouble::Unsupported),
        }
    }

    fn open(&mut self, name: &str) -> Result<Response, Trouble> {
        let now = self.now;
        self.last_id += 1;
        let id = SessionId(self.last_id);
        let device = self.device_mut(name);
        device.reap(now);
        let full = device.sessions.len() >= device.max_sessions
            || device.has(|fault| matches!(fault, Fault::SessionsFull));
        if full {
            return Err(Trouble::SessionsFull);
        }
        device.sessions.insert(id, now);
        Ok(Response::Opened(id))
    }

    fn read(&self, name: &str) -> Response {
        let device = self.device(name);
        if device.class != DeviceClass::Supply && self.is_orphaned(&device.machine) {
            return Response::Power(picket_core::power::Power::Unknown);
        }
        let (truth, in_transition) = match device.class {
            DeviceClass::Supply => (device.outlet_on, device.outlet_pending.is_some()),
            DeviceClass::Host | DeviceClass::Parent => {
                let machine = self.machine(&device.machine);
                (machine.is_on(), machine.pending.is_some())
            }
        };
        Response::Power(device.says(truth, in_transition))
    }

    /// A command that arrived in its session: now, later, or both.
    fn command(&mut self, name: &str, session: Option<SessionId>, verb: Verb) -> Result<Response, Trouble> {
        let late = self.device(name).faults.iter().find_map(|fault| match fault {
            Fault::Late { verb: of, after, answered, .. } if *of == verb => Some((*after, Some(*answered))),
            Fault::Twice { verb: of, after, .. } if *of == verb => Some((*after, None)),
            _ => None,
        });
        if let Some((after, instead)) = late {
            self.device_mut(name).wears(|fault| match fault {
                Fault::Late { verb: of, times, .. } | Fault::Twice { verb: of, times, .. } if *of == verb => {
                    Some(times)
                }
                _ => None,
            });
            let due = self.now + after;
            self.push(due, Event::Deliver { device: name.to_owned(), session, verb });
            match instead {
                Some(true) => return Ok(Response::Took { already: false }),
                Some(false) => return Err(Trouble::Silence),
                None => {}
            }
        }
        self.hear(name, session, verb, true);
        self.execute(name, verb)
    }

    fn hear(&mut self, name: &str, session: Option<SessionId>, verb: Verb, executed: bool) {
        let (at, device) = (self.now, name.to_owned());
        self.note(Heard { at, device, verb, session, late: false, executed });
    }

    /// A restart that was to come with the next off, if it does.
    fn restart_under(&mut self, name: &str, verb: Verb) -> bool {
        let device = self.device(name);
        if verb != Verb::Off || device.class != DeviceClass::Host || !self.machine(&device.machine).is_on() {
            return false;
        }
        let faults = &mut self.device_mut(name).faults;
        let at = faults.iter().position(|fault| matches!(fault, Fault::RestartsUnderOff { .. }));
        let Some(Fault::RestartsUnderOff { down }) = at.map(|at| faults.remove(at)) else { return false };
        self.act(Act::RestartBmc { device: name.to_owned(), down, estranged: true });
        self.device_mut(name).notices_a_rise = true;
        true
    }

    /// A device that believes its machine to be off notices that it came on.
    fn reconcile_if_it_rose(&mut self, name: &str) {
        let device = self.device(name);
        let last = self.machine(&device.machine).edges().last();
        let rose = |since: BootTime| last.is_some_and(|edge| edge.on && edge.at > since);
        if device.notices_a_rise && device.estranged.is_some_and(rose) {
            self.reconcile(name);
        }
    }

    /// A device that believes its machine to be off knows better again.
    pub fn reconcile(&mut self, name: &str) -> &mut Self {
        self.device_mut(name).estranged = None;
        self
    }

    /// Throws the switch behind a device.
    pub(crate) fn execute(&mut self, name: &str, verb: Verb) -> Result<Response, Trouble> {
        if self.restart_under(name, verb) {
            return Ok(Response::Took { already: false });
        }
        let now = self.now;
        // Whoever places it cannot reach it either.
        let known = self.device(name);
        if known.class != DeviceClass::Supply && self.is_orphaned(&known.machine) {
            return Err(Trouble::Refused);
        }
        let Self { devices, random, .. } = self;
        let Some(device) = devices.get_mut(name) else { return Err(Trouble::Silence) };
        if let Some(instead) = device.intercept(verb) {
            return instead;
        }
        let delay = device.delay(verb, random);
        let (is_supply, already) = (device.class == DeviceClass::Supply, device.already());
        let machine_name = device.machine.clone();
        let (is_on, pending) = if is_supply {
            (device.outlet_on, device.outlet_pending.clone())
        } else {
            let machine = self.machine(&machine_name);
            (machine.is_on(), machine.pending.clone())
        };
        match pending {
            // The power sequencer does one thing at a time.
            Some(pending) if pending.verb == verb => return Ok(Response::Took { already: false }),
            Some(_) if verb == Verb::On => return Err(Trouble::Busy),
            None if is_on == (verb == Verb::On) => return already,
            _ => {}
        }
        let due = now + delay;
        let pending = (!delay.is_zero()).then(|| Pending { verb, due, by: name.to_owned() });
        match (pending, is_supply) {
            (None, true) => {
                self.switch_outlet(name, verb);
                self.fall_with_parents(name);
            }
            (None, false) => {
                let machine = self.machine_mut(&machine_name);
                machine.pending = None;
                machine.switch(verb, now, name);
                self.fall_with_parents(name);
            }
            (Some(pending), true) => {
                self.device_mut(name).outlet_pending = Some(pending);
                self.push(due, Event::OutletDue(name.to_owned()));
            }
            (Some(pending), false) => {
                self.machine_mut(&machine_name).pending = Some(pending);
                self.push(due, Event::Due(machine_name));
            }
        }
        Ok(Response::Took { already: false })
    }

    fn identify(&self, name: &str) -> Response {
        let device = self.device(name);
        let said = device.faults.iter().find_map(|fault| match fault {
            Fault::SaysIdentity(other) => Some(other.clone()),
            _ => None,
        });
        let own = match device.class {
            // An outlet does not know what hangs on it.
            DeviceClass::Supply => picket_core::device::Identity::default(),
            DeviceClass::Host | DeviceClass::Parent => self.machine(&device.machine).identity.clone(),
        };
        Response::Identity(said.unwrap_or(own))
    }

    fn hold_settings(&self, name: &str) -> Result<HoldSettings, Trouble> {
        let device = self.device(name);
        let unsupported = device.class == DeviceClass::Supply
            || device.has(|fault| matches!(fault, Fault::HoldUnsupported));
        if unsupported { Err(Trouble::Unsupported) } else { Ok(self.machine(&device.machine).hold) }
    }

    fn set_hold(&mut self, name: &str, settings: HoldSettings) -> Result<Response, Trouble> {
        let found = self.hold_settings(name)?;
        let device = self.device(name);
        if device.has(|fault| matches!(fault, Fault::HoldIgnored)) {
            return Ok(Response::Hold(settings));
        }
        // Settings are put back, a watchdog is never started by that.
        let settings = HoldSettings { watchdog: settings.watchdog && found.watchdog, ..settings };
        let by_watchdog = device.has(|fault| matches!(fault, Fault::HoldsByWatchdog));
        let settings =
            if by_watchdog { HoldSettings { watchdog: settings.watchdog, ..found } } else { settings };
        let machine = device.machine.clone();
        self.machine_mut(&machine).hold = settings;
        Ok(Response::Hold(settings))
    }
}
