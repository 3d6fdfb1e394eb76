//! One account in one region, as all devices there share it: who asks, how much may be asked, and what goes together.

mod actions;
mod batch;
mod bucket;
mod credential_transport;
mod credentials;
mod process;
mod profiles;
mod queue;
mod sdk_files;
mod single_request;
mod wire;
mod words;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use aws_config::BehaviorVersion;
use aws_config::identity::IdentityCache;
use aws_config::retry::RetryConfig;
use aws_config::stalled_stream_protection::StalledStreamProtectionConfig;
use aws_config::timeout::TimeoutConfig;
use aws_credential_types::provider::SharedCredentialsProvider;
use aws_sdk_ec2::config::Region;
use aws_sdk_ec2::error::ProvideErrorMetadata;
use aws_sdk_ec2::{Client, config};
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::result::SdkError;
use parking_lot::{Mutex, RwLock};
use picket_cloud::{CLOCKS, Clients, Unclear};
use picket_core::time::{BootTime, Clock};
use picket_driver::{Call, DriverError, Effect, ErrorKind, SettingFault, source};
use picket_reach::proxy;
use tokio::time::{Instant, timeout_at};
use tracing::instrument::{WithDispatch, WithSubscriber};
use tracing::subscriber::NoSubscriber;

pub(crate) use self::actions::{Attachment, Change, EbsVolume};
use self::actions::{Describe, DescribeAttached, DescribeVolumes, Stop, Tag, Untag};
use self::batch::Batch;
use self::bucket::Bucket;
use self::credential_transport::CredentialTransport;
use self::credentials::BackgroundCredentials;
use self::profiles::ProfileLogin;
pub(crate) use self::single_request::BucketAccess;
pub(crate) use self::wire::Stamps;
use self::wire::{LastAttempt, Sending, Ticket};
pub(crate) use self::words::Failure;
use self::words::RequestContext;
use crate::instance::Instance;

/// Connections that are kept for questions, to one place.
const KEPT: usize = 8;
/// How long AWS takes a request after the time of its signature: the longest that it says anywhere (`RequestExpired`: more than 15
/// minutes). In most cases it is five, it says elsewhere; what is promised counts here, and not what is usual.
pub(crate) const SIGNED: Duration = Duration::from_secs(900);
/// S8: how long a command may be taken after the answer whose time it bears, by what AWS promises.
pub(crate) const LIFE: Duration = Duration::from_secs(SIGNED.as_secs() + CLOCKS.as_secs());

/// What the SDK made of an answer.
pub(crate) type SdkResult<T> = Result<T, Box<SdkError<ServiceError, HttpResponse>>>;

/// An error of whichever operation: its code and its words.
#[derive(Debug)]
pub(crate) struct ServiceError(aws_sdk_ec2::error::ErrorMetadata);

impl std::fmt::Display for ServiceError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl std::error::Error for ServiceError {}

impl ProvideErrorMetadata for ServiceError {
    fn meta(&self) -> &aws_sdk_ec2::error::ErrorMetadata {
        &self.0
    }
}

/// An operation's answer as that of whichever.
pub(crate) fn said<T, E: ProvideErrorMetadata>(told: Result<T, SdkError<E, HttpResponse>>) -> SdkResult<T> {
    told.map_err(|error| Box::new(error.map_service_error(|error| ServiceError(error.meta().clone()))))
}

/// Who asks, and where. What is not set is the standard chain's: environment, profile, web identity, the metadata service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Account {
    pub(crate) region: Option<String>,
    pub(crate) profile: Option<String>,
    pub(crate) config_file: Option<PathBuf>,
    pub(crate) credentials_file: Option<PathBuf>,
    /// Names of the variables that a program which prints credentials finds in its environment.
    pub(crate) credential_env: Vec<String>,
    pub(crate) endpoint: Option<String>,
    pub(crate) ca_file: Option<PathBuf>,
}

/// The account in its region.
pub(crate) struct Cloud {
    account: Account,
    clock: Arc<dyn Clock>,
    /// S8: how long a command may be taken there after the answer whose time it bears.
    pub(crate) life: Duration,
    questions: reqwest::Client,
    commands: reqwest::Client,
    /// The SDK's; made when it is first needed, and anew once credentials were refused: their files may have changed.
    client: RwLock<Option<AuthenticatedClient>>,
    /// How many were made.
    made: AtomicU64,
    making: tokio::sync::Mutex<()>,
    /// Where EC2 was asked last.
    place: LastAttempt,
    /// Why whoever gives credentials, or tells the region, was asked in vain last.
    unheard: LastAttempt,
    instances: Arc<Batch<Describe>>,
    volumes: Arc<Batch<DescribeVolumes>>,
    attached: Arc<Batch<DescribeAttached>>,
    stops: Arc<Batch<Stop>>,
    tags: Arc<Batch<Tag>>,
    untags: Arc<Batch<Untag>>,
    /// What AWS's clock said last, and when that was asked for. Questions are signed by it, so that no clock here keeps one back.
    far: Mutex<Option<(SystemTime, BootTime)>>,
    /// One for each other action.
    buckets: Mutex<std::collections::HashMap<&'static str, Arc<Bucket>>>,
}

impl std::fmt::Debug for Cloud {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cloud").field("account", &self.account).finish_non_exhaustive()
    }
}

/// What the SDK logs has secrets in it: its requests, what STS answers. Nobody hears it (S18).
fn unheard<F: Future>(future: F) -> WithDispatch<F> {
    future.with_subscriber(NoSubscriber::default())
}

fn wrong(kind: ErrorKind, detail: impl Into<String>) -> DriverError {
    DriverError::new(kind, Effect::DidNotHappen, detail)
}

/// The SDK's client, which has its credentials.
#[derive(Clone)]
pub(super) struct AuthenticatedClient {
    /// Which one, in the order in which they were made.
    number: u64,
    client: Client,
}

impl Cloud {
    pub(crate) fn new(account: Account, clock: Arc<dyn Clock>, life: Duration) -> Result<Self, SettingFault> {
        profiles::look(&account).map_err(|why| SettingFault::new("profile", why))?;
        let clients = Clients::at(account.endpoint.as_deref(), KEPT, account.ca_file.as_deref());
        let Clients { questions, commands, .. } = clients.map_err(|why| SettingFault::new("ca_file", why))?;
        let bucket = |limit| Arc::new(Bucket::new(limit));
        // However volumes are asked for, AWS counts that as one action.
        let of_volumes = bucket(bucket::UNFILTERED);
        Ok(Self {
            questions,
            commands,
            account,
            clock,
            life,
            client: RwLock::default(),
            made: AtomicU64::default(),
            making: tokio::sync::Mutex::default(),
            place: LastAttempt::default(),
            unheard: LastAttempt::default(),
            instances: Arc::new(Batch::new(bucket(bucket::UNFILTERED), None)),
            volumes: Arc::new(Batch::new(of_volumes.clone(), None)),
            attached: Arc::new(Batch::new(of_volumes, None)),
            stops: Arc::new(Batch::new(bucket(bucket::COMMANDS), Some(bucket::STOPPED))),
            tags: Arc::new(Batch::new(bucket(bucket::COMMANDS), None)),
            untags: Arc::new(Batch::new(bucket(bucket::COMMANDS), None)),
            far: Mutex::default(),
            buckets: Mutex::default(),
        })
    }

    /// The SDK's client, by the credentials and the region that the chain finds.
    pub(super) async fn client(&self, until: Instant) -> Result<AuthenticatedClient, DriverError> {
        let held = || self.client.read().clone();
        if let Some(held) = held() {
            return Ok(held);
        }
        let late = || wrong(ErrorKind::TimedOut, "neither region nor credentials were found in time");
        let _one = timeout_at(until, self.making.lock()).await.map_err(|_| late())?;
        if let Some(held) = held() {
            return Ok(held);
        }
        let client = timeout_at(until, unheard(self.made())).await.map_err(|_| late())??;
        let held = AuthenticatedClient { number: self.made.fetch_add(1, Ordering::Relaxed), client };
        *self.client.write() = Some(held.clone());
        Ok(held)
    }

    async fn made(&self) -> Result<Client, DriverError> {
        let Account { region, profile, config_file, credentials_file, endpoint, .. } = &self.account;
        if let Some(file) = credentials_file {
            source::private(file)
                .map_err(|why| wrong(ErrorKind::Settings, format!("credentials_file: {why}")))?;
        }
        sdk_files::check(config_file.as_deref())?;
        let by = profiles::look(&self.account)
            .map_err(|why| wrong(ErrorKind::Settings, format!("profile: {why}")))?;
        let mut loader = aws_config::defaults(BehaviorVersion::v2026_01_12())
            .http_client(CredentialTransport {
                client: self.questions.clone(),
                unheard: self.unheard.clone(),
            })
            .retry_config(RetryConfig::disabled())
            .timeout_config(TimeoutConfig::disabled())
            .identity_cache(IdentityCache::lazy().load_timeout(credentials::WITHIN).build())
            .stalled_stream_protection(StalledStreamProtectionConfig::disabled());
        if let Some(region) = region {
            loader = loader.region(Region::new(region.clone()));
        }
        if let Some(profile) = profile {
            loader = loader.profile_name(profile);
        }
        if config_file.is_some() || credentials_file.is_some() {
            loader = loader.profile_files(profiles::files(&self.account));
        }
        let found = loader.load().await;
        if found.region().is_none() {
            let detail = "no region: set `region`, or a providerID with its zone, or one in the profile or in AWS_REGION";
            let unheard = self.unheard.get().map(|why| format!(" ({why})")).unwrap_or_default();
            return Err(wrong(ErrorKind::Settings, format!("{detail}{unheard}")));
        }
        let mut builder = config::Builder::from(&found);
        let given = match by {
            ProfileLogin::Chain => found.credentials_provider(),
            ProfileLogin::Program { process, roles } => {
                Some(profiles::provider(process, roles, &found).await)
            }
        };
        let given = given.map(|of| SharedCredentialsProvider::new(BackgroundCredentials::new(of)));
        builder.set_credentials_provider(given);
        // The builder has the endpoint of AWS's own variables and files already: EC2's own goes before the one of all services.
        if endpoint.is_some() || profiles::ignores_endpoints(&self.account) {
            builder.set_endpoint_url(endpoint.clone());
        }
        Ok(Client::from_conf(builder.build()))
    }

    /// Where it is asked.
    pub(crate) fn place(&self) -> Option<String> {
        self.place.get().or_else(|| self.account.endpoint.clone())
    }

    /// Where it is asked, and by whom, as far as that is known.
    fn asked(&self) -> RequestContext {
        let client = self.client.read().clone().map(|held| held.client);
        let Account { region, profile, .. } = &self.account;
        let found = client.as_ref().and_then(|client| client.config().region()).map(Region::to_string);
        let region = found.or_else(|| region.clone()).map(|region| format!(" in {region}"));
        let place = self.place();
        let at = place.as_ref().map(|place| format!(" at {place}"));
        let of = format!("EC2{}{}", region.unwrap_or_default(), at.unwrap_or_default());
        let by = match profile {
            Some(profile) => format!("AWS's standard chain, with the profile {profile:?}"),
            None => "AWS's standard chain".to_owned(),
        };
        let proxy = place.and_then(|place| proxy::unused(&place.parse().ok()?));
        RequestContext { of, by, proxy, unheard: self.unheard.get() }
    }

    /// AWS answered, and said what time it is there.
    fn hear(&self, stamps: Stamps) {
        if let Some(date) = stamps.date {
            *self.far.lock() = Some((date, stamps.asked_at));
        }
    }

    /// AWS's time, as far as it is known: never later than it is there.
    pub(crate) fn far_now(&self) -> Option<SystemTime> {
        let (date, at) = (*self.far.lock())?;
        Some(date + self.clock.boot().since(at))
    }

    /// After the credentials of that client were refused others are looked for; those of a later one are none of its.
    fn note(&self, failure: &Failure, number: u64) {
        failure.stamps.into_iter().for_each(|stamps| self.hear(stamps));
        if failure.kind == ErrorKind::Authentication {
            let mut held = self.client.write();
            held.take_if(|held| held.number == number);
        }
    }

    /// One request: a command with the tickets of all who order it, a question without.
    fn sending(&self, until: Instant, tickets: Vec<Arc<Ticket>>) -> Sending {
        let client = if tickets.is_empty() { &self.questions } else { &self.commands };
        Sending::new(client.clone(), self.clock.clone(), until, tickets, self.place.clone())
    }

    /// The instance as it is now, `Err` within: AWS says that there is none, in its words; and when that, or its refusal, was said.
    pub(crate) async fn instance(
        self: &Arc<Self>,
        id: &str,
        call: &Call,
    ) -> (Result<Result<Instance, String>, DriverError>, Option<Stamps>) {
        match self.instances.ask(self, id, call).await {
            Ok(Ok((instance, stamps))) => (Ok(Ok(instance)), Some(stamps)),
            Ok(Err(failure)) if failure.is_not_found() => (Ok(Err(failure.words)), failure.stamps),
            Ok(Err(failure)) => {
                let stamps = failure.stamps;
                (Err(failure.of_question()), stamps)
            }
            Err(error) => (Err(error), None),
        }
    }

    /// A volume; `None`: AWS says that there is none.
    pub(crate) async fn volume(
        self: &Arc<Self>,
        id: &str,
        call: &Call,
    ) -> Result<Option<(EbsVolume, Stamps)>, DriverError> {
        match self.volumes.ask(self, id, call).await? {
            Ok(volume) => Ok(Some(volume)),
            Err(failure) if failure.is_not_found() => Ok(None),
            Err(failure) => Err(failure.of_question()),
        }
    }

    /// What EBS has attached at that instance.
    pub(crate) async fn attached(
        self: &Arc<Self>,
        instance: &str,
        call: &Call,
    ) -> Result<(Vec<EbsVolume>, Stamps), DriverError> {
        match self.attached.ask(self, instance, call).await? {
            Ok((Ok(volumes), stamps)) => Ok((volumes, stamps)),
            Ok((Err(why), _)) => Err(wrong(ErrorKind::Protocol, why)),
            Err(failure) => Err(failure.of_question()),
        }
    }

    /// Stops it, by force and without asking its system, signed as of that time; in which state it was.
    pub(crate) async fn stop(
        self: &Arc<Self>,
        id: &str,
        signed: SystemTime,
        unclear: &Unclear,
        call: &Call,
    ) -> Result<Result<(Change, Stamps), Failure>, DriverError> {
        self.stops.order(self, id, signed, unclear, call).await
    }

    /// Sets the tag, or takes it away.
    pub(crate) async fn tag(
        self: &Arc<Self>,
        set: bool,
        id: &str,
        signed: SystemTime,
        unclear: &Unclear,
        call: &Call,
    ) -> Result<Stamps, DriverError> {
        let told = match set {
            true => self.tags.order(self, id, signed, unclear, call).await?,
            false => self.untags.order(self, id, signed, unclear, call).await?,
        };
        told.map(|((), stamps)| stamps).map_err(Failure::into_error)
    }

    fn bucket(&self, action: &'static str) -> Arc<Bucket> {
        let limit = match action {
            "StartInstances" => bucket::STARTS,
            _ if action.starts_with("Describe") => bucket::QUESTIONS,
            _ => bucket::COMMANDS,
        };
        let mut buckets = self.buckets.lock();
        buckets.entry(action).or_insert_with(|| Arc::new(Bucket::new(limit))).clone()
    }
}
