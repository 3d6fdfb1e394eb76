//! The conversation with one service: one request in flight, one connection, one session, and what became
//! of those before.
//!
//! # Invariants
//!
//! - Before each request that changes something, on a connection that stands, the permit is asked (S6).
//!   Shown by `who_leads_no_more_sends_nothing_on`.
//! - A session that carried a command is kept in mind until it is surely over on the far side (S8). Shown
//!   by `a_session_that_does_not_answer_its_deletion_is_waited_out`.
//! - What is asked for an on is sent once, in the session in which power was read. Shown by
//!   `an_on_is_not_sent_in_another_session_than_that_of_its_reading`.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use picket_core::power::{Epoch, Loss};
use picket_core::time::BootTime;
use picket_driver::{Call, DriverError, Effect, Effort, ErrorKind};
use rustls::pki_types::ServerName;
use tokio::time::Instant;
use tokio_rustls::TlsConnector;

use crate::agreement::Agreement;
use crate::connection::Connection;
use crate::discovery::Learned;
use crate::login::{Lockout, Login};
use crate::machine_identity::{ConnectionTarget, LearnedIdentity};
use crate::manager_life::ManagerLife;
use crate::oddities::Oddities;
use crate::pool::Pool;
use crate::service::Service;
use crate::service_request::ServiceRequest;
use crate::session::{Session, name_of};
use crate::settings::{Authentication, Settings};
use crate::unclear::Unclear;

/// The state of the conversation.
pub struct Line {
    pub(crate) settings: Arc<Settings>,
    tls: TlsConnector,
    name: ServerName<'static>,
    pool: Pool,
    pub(crate) connection: Option<Connection>,
    connections: u64,
    /// Where sessions are made.
    pub(crate) sessions: Option<String>,
    /// That is no word of the service's: its root shows a stranger nothing.
    pub(crate) unlisted: bool,
    /// What was found at the service.
    pub(crate) service: Option<Service>,
    /// What of the way there is known in this session.
    pub(crate) learned: Learned,
    /// After how long the service ends an idle session, where it says more than the settings.
    pub(crate) said_timeout: Option<Duration>,
    /// When the service refused a session last whose life was not over.
    pub(crate) refused_at: Option<BootTime>,
    /// The certificate on the newest connection.
    pub(crate) certificate: Option<String>,
    /// What the system, and its service, said of themselves when `identify` asked them last.
    pub(crate) known_as: LearnedIdentity,
    /// On which connection the system said last that it is ours, where it was asked without a session.
    pub(crate) ours_on: Option<u64>,
    /// Where that was.
    pub(crate) ours_at: Option<ConnectionTarget>,
    pub(crate) session: Option<Session>,
    /// The last login named no place at which its session can be ended.
    pub(crate) placeless: bool,
    /// Sessions that carried a command, or whose deletion was begun and its answer not seen.
    pub(crate) orphans: Vec<Session>,
    /// Commands that had no clear end.
    pub(crate) unclear: Unclear,
    /// Monitors of tasks whose end was not seen.
    pub(crate) tasks: Vec<String>,
    /// A task that cannot be followed was begun then.
    pub(crate) unfollowed: Option<Instant>,
    /// Something that changes something was sent since the last quiesce.
    pub(crate) carried: bool,
    pub(crate) no_session_until: Option<Instant>,
    /// It goes without as a login was refused, which may have been in passing.
    pub(crate) login_is_refused: bool,
    /// And basic authentication was refused after that.
    pub(crate) basic_is_refused: bool,
    /// A login that is not answered yet.
    pub(crate) logging_in: Option<Login>,
    pub(crate) lockout: Option<Lockout>,
    pub(crate) epochs: u64,
    pub(crate) epoch: Option<Epoch>,
    /// The newest loss, which every epoch after it tells.
    pub(crate) loss: Option<Loss>,
    /// What the manager said of its life, and when.
    pub(crate) life: Option<(ManagerLife, BootTime)>,
    /// Whether that shows its restarts.
    pub(crate) agreement: Agreement,
    /// The connection on which the manager's life was looked at last.
    pub(crate) looked: Option<u64>,
    /// The manager restarted, and no reading told that yet; since when it was not answered.
    pub(crate) untold: Option<BootTime>,
    /// Power was read in this session, or since we show who we are without one.
    pub(crate) sighted: bool,
    /// Since when questions are not answered, or not by a manager that is known to be in the same life.
    pub(crate) unanswered_since: Option<BootTime>,
    /// What of it is borne.
    pub(crate) oddities: Oddities,
    /// The service said at the last login that the account may only read.
    pub(crate) only_reads: bool,
    /// What the BIOS of a system without a hold said at the last check of a person.
    pub(crate) bios_remark: Option<String>,
}

impl std::fmt::Debug for Line {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Line")
            .field("settings", &self.settings)
            .field("session", &self.session)
            .finish_non_exhaustive()
    }
}

/// When a call must be back: a little before its deadline.
pub fn end_of(call: &Call) -> Instant {
    let left = call.deadline().saturating_duration_since(Instant::now());
    call.deadline() - (left / 10).min(Duration::from_millis(20))
}

impl Line {
    /// Nothing was said yet.
    pub fn new(settings: Arc<Settings>, tls: TlsConnector, name: ServerName<'static>, pool: Pool) -> Self {
        Self {
            settings,
            tls,
            name,
            pool,
            connection: None,
            connections: 0,
            sessions: None,
            unlisted: false,
            service: None,
            learned: Learned::default(),
            said_timeout: None,
            refused_at: None,
            certificate: None,
            known_as: LearnedIdentity::default(),
            ours_on: None,
            ours_at: None,
            session: None,
            placeless: false,
            orphans: Vec::new(),
            unclear: Unclear::default(),
            tasks: Vec::new(),
            unfollowed: None,
            carried: false,
            no_session_until: None,
            login_is_refused: false,
            basic_is_refused: false,
            logging_in: None,
            lockout: None,
            epochs: 0,
            epoch: None,
            life: None,
            agreement: Agreement::default(),
            looked: None,
            loss: None,
            untold: None,
            sighted: false,
            unanswered_since: None,
            oddities: Oddities::default(),
            only_reads: false,
            bios_remark: None,
        }
    }

    /// An error with what it means for all that was sent.
    pub fn error(&self, effort: &Effort, kind: ErrorKind, detail: impl std::fmt::Display) -> DriverError {
        effort.error(kind, format!("{}: {detail}", self.settings.authority()))
    }

    /// Whether requests carry a token, or shall.
    pub fn is_by_session(&self) -> bool {
        match self.settings.authentication {
            Authentication::Session => true,
            Authentication::SessionOrBasic => {
                self.no_session_until.is_none_or(|until| Instant::now() >= until)
            }
            Authentication::Basic => false,
        }
    }

    /// Whether a request says who we are. Where there are sessions, what needs none is asked without.
    pub(crate) fn is_authenticated(&self, ask: &ServiceRequest) -> bool {
        !ask.open || !self.is_by_session()
    }

    /// The longest that the service may keep an idle session, by the settings or by its own word.
    pub fn longest_idle(&self) -> Duration {
        let said = self.said_timeout.map(|said| said + said / 20);
        said.unwrap_or_default().max(self.settings.longest_idle())
    }

    /// The name of the session that is there, for whoever leads later.
    pub fn session_name(&self) -> Option<String> {
        Some(name_of(&self.settings, self.session.as_ref()?.path.as_deref()?))
    }

    /// At the end of a call: only so many connections are kept that did nothing but look.
    pub fn settle(&mut self) {
        // What a caller left in the middle of: nothing of it is sent any more.
        self.connection = self.connection.take().filter(Connection::is_at_rest);
        let Some(connection) = &mut self.connection else { return };
        if !self.carried && connection.place.is_none() {
            connection.place = self.pool.place();
            if connection.place.is_none() {
                self.connection = None;
            }
        }
    }

    /// The connection is closed, and nothing counts as carried any more.
    pub fn hang_up(&mut self) {
        self.connection = None;
        self.carried = false;
        self.sighted = false;
        self.looked = None;
        // Without a session this is all that a conversation was.
        self.learned = Learned::default();
    }

    /// A connection that stands.
    pub(crate) async fn connect(
        &mut self,
        call: &Call,
        until: Instant,
    ) -> Result<&mut Connection, DriverError> {
        self.connect_to(None, call, until).await
    }

    /// The same; a new one leads to that address, if one is given.
    pub(crate) async fn connect_to(
        &mut self,
        address: Option<SocketAddr>,
        call: &Call,
        until: Instant,
    ) -> Result<&mut Connection, DriverError> {
        let usable = match &mut self.connection {
            Some(connection) => connection.is_usable().await,
            None => false,
        };
        if !usable {
            self.connection = None;
            self.connections += 1;
            // Who does not let us in answers no question either; a caller who leaves does not wait for that.
            let silent_before = self.unanswered_since;
            self.unanswered_since.get_or_insert(call.now());
            let (id, settings) = (self.connections, &self.settings);
            let opened = Connection::open(id, address, settings, &self.tls, &self.name, until).await?;
            self.unanswered_since = silent_before;
            self.stands(opened);
        }
        let gone = DriverError::new(ErrorKind::Unreachable, Effect::DidNotHappen, "the connection is gone");
        self.connection.as_mut().ok_or(gone)
    }

    /// From now on everything goes on this connection.
    pub(crate) fn stands(&mut self, connection: Connection) {
        self.certificate = connection.certificate().map(str::to_owned);
        self.connection = Some(connection);
    }
}

/// What to do about a service without sessions.
pub const NO_SESSIONS: &str =
    "authentication = \"basic\" goes without, and max_life then says how late a command may land";
