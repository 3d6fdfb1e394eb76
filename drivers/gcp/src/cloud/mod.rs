//! One project as one account sees it: its token, questions and commands, how much may be asked, and what
//! goes together. All devices of one account in one project share it.
//!
//! # Invariants
//!
//! - A question may be asked again with a new token. A command goes once, with a token that is there and
//!   that nobody takes for longer than the ledger says (S8). Shown by
//!   `a_token_that_lives_longer_than_the_ledger_says_bears_no_on`.
//! - Credentials that were refused are not tried again and again. Shown by
//!   `who_is_refused_a_token_does_not_ask_again_and_again`.

mod batch;
mod command;
mod credentials;
mod lists;
mod login;
mod lookups;
mod minute_quota;
mod questions;
mod rates;
mod words;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use picket_cloud::{CLOCKS, Clients, Token, Tokens, redact};
use picket_core::time::BootTime;
use picket_driver::{Call, DriverError, Effect, ErrorKind, SettingFault};
use picket_reach::web::{self, Answer};
use reqwest::Url;
use reqwest::header::AUTHORIZATION;
use serde::de::DeserializeOwned;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc2822;

use self::batch::Batch;
pub(crate) use self::command::{Command, CommandAnswer};
use self::credentials::{Credentials, DefaultFile};
use self::login::{Login, bearer};
use self::rates::Group;
pub(crate) use self::rates::Rates;
pub(crate) use self::words::Failure;
use crate::instance::Instance;
use crate::operation::Operation;

const ENDPOINT: &str = "https://compute.googleapis.com";
const METADATA: &str = "http://metadata.google.internal";
/// Names another metadata server, as Google's own tools have it.
const METADATA_HOST: &str = "GCE_METADATA_HOST";
/// As much of an answer as is read.
const LONGEST: usize = 32 << 20;
/// Connections that are kept for questions, to one place.
const KEPT: usize = 16;
/// After we were refused a token none is asked for again for so long; for a fence shorter: who gives tokens may only be starting.
const REFUSED: Duration = Duration::from_secs(30);
const REFUSED_A_FENCE: Duration = Duration::from_secs(5);
/// For so many seconds Google gives a token, where nobody asks for another time.
const USUAL: u64 = 3_600;
/// How long what carries such a token may be taken, and what clocks may differ by.
pub(crate) const USUAL_LIFE: Duration = Duration::from_secs(USUAL + CLOCKS.as_secs());

/// Who asks, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Account {
    pub(crate) project: String,
    pub(crate) credentials_file: Option<PathBuf>,
    pub(crate) endpoint: Option<String>,
    pub(crate) metadata: Option<String>,
    pub(crate) ca_file: Option<PathBuf>,
}

/// When something was asked and answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamps {
    pub(crate) asked_at: BootTime,
    pub(crate) answered_at: BootTime,
}

/// The project.
pub(crate) struct Cloud {
    account: Account,
    endpoint: String,
    metadata: String,
    clients: Clients,
    tokens: Tokens,
    rates: Arc<Rates>,
    batches: Mutex<HashMap<String, Zone>>,
}

/// What is asked of one zone at once.
#[derive(Clone)]
struct Zone {
    instances: Arc<Batch<questions::Instances>>,
    unfinished: Arc<Batch<questions::UnfinishedOperations>>,
    operations: Arc<Batch<questions::OperationsByName>>,
}

impl std::fmt::Debug for Cloud {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cloud").field("account", &self.account).finish_non_exhaustive()
    }
}

impl Cloud {
    pub(crate) fn new(account: Account, rates: Arc<Rates>) -> Result<Self, SettingFault> {
        let who = Credentials::look(account.credentials_file.as_deref(), DefaultFile::found());
        let who = who.map_err(|why| SettingFault::new("credentials_file", why))?;
        // Whoever names a time is given no other; where the file says another one later, what is given then counts.
        let longest = who.and_then(|who| who.asks_for()).unwrap_or(USUAL);
        let clients = Clients::at(account.endpoint.as_deref(), KEPT, account.ca_file.as_deref());
        let host = std::env::var(METADATA_HOST).ok().filter(|host| !host.is_empty());
        let metadata = account.metadata.clone().or_else(|| host.map(|host| format!("http://{host}")));
        Ok(Self {
            clients: clients.map_err(|why| SettingFault::new("ca_file", why))?,
            endpoint: account.endpoint.clone().unwrap_or_else(|| ENDPOINT.to_owned()),
            metadata: metadata.unwrap_or_else(|| METADATA.to_owned()),
            account,
            tokens: Tokens::asked_for(longest),
            rates,
            batches: Mutex::default(),
        })
    }

    /// S8: how long what carries a token may still be taken, by the longest life that one was given. The metadata server gives also
    /// what is left of one, and the next one lives longer.
    pub(crate) fn longest_life(&self) -> Duration {
        self.tokens.longest_life().unwrap_or(USUAL_LIFE)
    }

    /// Where Compute Engine is asked.
    pub(crate) fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// Sees to it that a token is there for a command.
    pub(crate) async fn ready(&self, call: &Call) -> Result<(), DriverError> {
        self.token(call).await.map(drop)
    }

    /// A token that serves, a new one if need be.
    async fn token(&self, call: &Call) -> Result<Arc<Token>, DriverError> {
        let pause = if call.may_only_read() { REFUSED } else { REFUSED_A_FENCE };
        self.tokens.get(call, pause, self.log_in(call)).await
    }

    async fn log_in(&self, call: &Call) -> Result<Token, DriverError> {
        let wrong = |why| DriverError::new(ErrorKind::Settings, Effect::DidNotHappen, why);
        let who = Credentials::find(self.account.credentials_file.as_deref()).map_err(wrong)?;
        Login { web: &self.clients.logins, metadata: &self.metadata, call }.by(&who).await
    }

    /// Where something is, with what is asked of it. `path` begins at `projects/`.
    fn place(&self, path: &str, query: &[(&str, &str)]) -> Result<Url, DriverError> {
        let text = format!("{}/compute/v1/{path}", self.endpoint);
        let mut url = Url::parse(&text).map_err(|error| {
            DriverError::new(
                ErrorKind::Settings,
                Effect::DidNotHappen,
                format!("no place can be made of {path:?}: {error}"),
            )
        })?;
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        Ok(url)
    }

    /// What belongs to the project's zone.
    pub(crate) fn zonal(&self, zone: &str, rest: &str) -> String {
        format!("projects/{}/zones/{zone}/{rest}", self.account.project)
    }

    /// Asks, and reads JSON. With a new token once, where ours is not known any more. `region`: whose limits count.
    ///
    /// # Errors
    /// `Err` outside: no question was answered. Within: it was, and not with what was asked for.
    pub(crate) async fn ask<T: DeserializeOwned>(
        &self,
        method: &'static str,
        (region, group): (&str, Group),
        path: &str,
        query: &[(&str, &str)],
        call: &Call,
    ) -> Result<Result<(T, Stamps), Failure>, DriverError> {
        let bucket = self.rates.bucket(region, group);
        let mut renewed = false;
        loop {
            self.rates.wait(&bucket, method, call).await?;
            let token = self.token(call).await?;
            let place = self.place(path, query)?;
            let request = self.clients.questions.get(place).header(AUTHORIZATION, bearer(&token.secret)?);
            let asked_at = call.now();
            let answer = web::exchange_up_to(LONGEST, request, call.deadline()).await;
            let answer = match answer {
                Ok(answer) => answer,
                Err(failed) => return Ok(Err(Failure::unanswered(method, &self.endpoint, failed))),
            };
            let stamps = Stamps { asked_at, answered_at: call.now() };
            let status = answer.code.as_u16();
            if status == 200 {
                bucket.accepted();
                let senseless = |why: &str| Ok(Err(Failure::senseless(method, status, why)));
                if answer.cut {
                    return senseless(&format!("it is longer than {LONGEST} bytes"));
                }
                return match serde_json::from_slice(&answer.body) {
                    Ok(told) => Ok(Ok((told, stamps))),
                    Err(error) => senseless(&error.to_string()),
                };
            }
            let answer = redact::answer(answer, &[token.secret.expose()]);
            let failure = Failure::of(method, &answer);
            match failure.kind {
                ErrorKind::Authentication if !renewed && !token.is_young(call.now()) => {
                    self.tokens.forget(&token, call.now());
                    renewed = true;
                }
                // It is asked again as soon as its limits let it, while its caller waits.
                ErrorKind::Throttled => rates::refused(&bucket, date_of(&answer)),
                _ => return Ok(Err(failure)),
            }
        }
    }

    fn zone(&self, zone: &str) -> Zone {
        let mut batches = self.batches.lock();
        let made = || Zone {
            instances: Arc::new(Batch::new(zone)),
            unfinished: Arc::new(Batch::new(zone)),
            operations: Arc::new(Batch::new(zone)),
        };
        batches.entry(zone.to_owned()).or_insert_with(made).clone()
    }

    /// The instance of that numeric id as it is now.
    pub(crate) async fn instance(
        self: &Arc<Self>,
        zone: &str,
        id: &str,
        call: &Call,
    ) -> Result<Result<(Instance, Stamps), Failure>, DriverError> {
        self.zone(zone).instances.ask(self, id, call).await
    }

    /// What is under way at that instance.
    pub(crate) async fn unfinished(
        self: &Arc<Self>,
        zone: &str,
        id: &str,
        call: &Call,
    ) -> Result<Vec<Operation>, DriverError> {
        let told = self.zone(zone).unfinished.ask(self, id, call).await?;
        told.map(|(operations, _)| operations).map_err(Failure::of_question)
    }

    /// An operation by its name.
    pub(crate) async fn operation(
        self: &Arc<Self>,
        zone: &str,
        name: &str,
        call: &Call,
    ) -> Result<Result<Operation, Failure>, DriverError> {
        let told = self.zone(zone).operations.ask(self, name, call).await?;
        Ok(told.map(|(operation, _)| operation))
    }
}

/// What Google's clock says in an answer.
fn date_of(answer: &Answer) -> Option<OffsetDateTime> {
    OffsetDateTime::parse(answer.header("date")?, &Rfc2822).ok()
}

/// The region of a zone.
pub(crate) fn region_of(zone: &str) -> &str {
    zone.rsplit_once('-').map_or(zone, |(region, _)| region)
}
