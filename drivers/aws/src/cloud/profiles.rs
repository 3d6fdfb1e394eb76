//! The ways to log in that AWS's SDK does not go for us: a profile's program is run by a keeper or not at all, and a login that needs a person
//! is refused before anything is sent.

use std::borrow::Cow;

use aws_config::SdkConfig;
use aws_config::profile::{Profile, ProfileSet};
use aws_config::sts::AssumeRoleProvider;
use aws_credential_types::provider::SharedCredentialsProvider;
use aws_runtime::env_config::file::{EnvConfigFileKind, EnvConfigFiles};
use aws_types::os_shim_internal::{Env, Fs};
use futures::FutureExt;

use super::process::Process;
use super::{Account, unheard};

/// A profile that refers to another one, and so on: the SDK ends a circle with an error of its own.
const LONGEST: usize = 16;
const IGNORES: &str = "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS";

/// How the profile logs in.
#[derive(Debug)]
pub(super) enum ProfileLogin {
    /// As the SDK does it.
    Chain,
    /// A program, and the roles that are assumed with what it prints, the first one first.
    Program { process: Process, roles: Vec<Role> },
}

/// A role that is assumed.
#[derive(Debug)]
pub(super) struct Role {
    arn: String,
    session: Option<String>,
    external_id: Option<String>,
}

/// AWS's files as the settings have them.
pub(super) fn files(account: &Account) -> EnvConfigFiles {
    let (config, credentials) = (&account.config_file, &account.credentials_file);
    let files = EnvConfigFiles::builder()
        .include_default_config_file(config.is_none())
        .include_default_credentials_file(credentials.is_none());
    let set = [(EnvConfigFileKind::Config, config), (EnvConfigFileKind::Credentials, credentials)];
    let with = set.into_iter().filter_map(|(kind, file)| Some((kind, file.as_ref()?)));
    with.fold(files, |files, (kind, file)| files.with_file(kind, file)).build()
}

/// Looks at the profile. Reads AWS's files, and sends nothing.
///
/// # Errors
/// It cannot serve a gateway, in words.
pub(super) fn look(account: &Account) -> Result<ProfileLogin, String> {
    let has = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    // As in the SDK's chain: keys of the environment go before every profile.
    if has("AWS_ACCESS_KEY_ID") && has("AWS_SECRET_ACCESS_KEY") {
        return Ok(ProfileLogin::Chain);
    }
    loaded(account).map_or(Ok(ProfileLogin::Chain), |profiles| by(&profiles, &account.credential_env))
}

/// Whether what AWS's variables and files have as endpoints is to be left alone. The SDK of now does not look at that for an endpoint of
/// one service.
pub(super) fn ignores_endpoints(account: &Account) -> bool {
    ignores(std::env::var(IGNORES).ok(), || {
        let profiles = loaded(account)?;
        Some(profiles.get("ignore_configured_endpoint_urls")?.to_owned())
    })
}

fn ignores(variable: Option<String>, profile: impl FnOnce() -> Option<String>) -> bool {
    variable.or_else(profile).is_some_and(|value| value.eq_ignore_ascii_case("true"))
}

/// `None`: they cannot be read, which the SDK says, once somebody asks.
fn loaded(account: &Account) -> Option<ProfileSet> {
    let profile = account.profile.clone().map(Cow::Owned);
    let (fs, env, files) = (Fs::real(), Env::real(), files(account));
    // It waits for nothing.
    unheard(aws_config::profile::load(&fs, &env, &files, profile)).now_or_never()?.ok()
}

fn by(profiles: &ProfileSet, env: &[String]) -> Result<ProfileLogin, String> {
    let (mut name, mut roles) = (profiles.selected_profile(), Vec::new());
    for _ in 0..LONGEST {
        let Some(profile) = profiles.get_profile(name) else { break };
        let has = |key: &str| profile.get(key).is_some();
        // The same order as the SDK's.
        if !roles.is_empty() && has("aws_access_key_id") && has("aws_secret_access_key") {
            break;
        }
        if let Some(arn) = profile.get("role_arn").filter(|_| !has("web_identity_token_file")) {
            let text = |key: &str| profile.get(key).map(str::to_owned);
            let (session, external_id) = (text("role_session_name"), text("external_id"));
            roles.push(Role { arn: arn.to_owned(), session, external_id });
            match profile.get("source_profile") {
                Some(source) if source != name => {
                    name = source;
                    continue;
                }
                Some(_) => {}
                None => break,
            }
        }
        return base(profile, env, roles);
    }
    Ok(ProfileLogin::Chain)
}

/// What a profile has that refers to no other one.
fn base(profile: &Profile, env: &[String], mut roles: Vec<Role>) -> Result<ProfileLogin, String> {
    let has = |key: &str| profile.get(key).is_some();
    let name = profile.name();
    if has("credential_source") || has("web_identity_token_file") {
        return Ok(ProfileLogin::Chain);
    }
    let of_person = ["sso_session", "sso_start_url", "sso_account_id", "login_session"];
    if let Some(key) = of_person.into_iter().find(|key| has(key)) {
        return Err(format!(
            "the profile {name:?} has {key}, which is a person's login in a browser, and ends within hours: take a profile with a role by \
             web identity, with credential_process (as IAM Roles Anywhere has it) or with keys"
        ));
    }
    let Some(command) = profile.get("credential_process") else { return Ok(ProfileLogin::Chain) };
    let process = Process::new(command, env)
        .map_err(|why| format!("the credential_process of the profile {name:?}: {why}"))?;
    roles.reverse();
    Ok(ProfileLogin::Program { process, roles })
}

/// The program's credentials, or those of the role that is assumed with them.
pub(super) async fn provider(
    process: Process,
    roles: Vec<Role>,
    found: &SdkConfig,
) -> SharedCredentialsProvider {
    let mut provider = SharedCredentialsProvider::new(process);
    for Role { arn, session, external_id } in roles {
        let mut role = AssumeRoleProvider::builder(arn).configure(found);
        if let Some(session) = session {
            role = role.session_name(session);
        }
        if let Some(external_id) = external_id {
            role = role.external_id(external_id);
        }
        provider = SharedCredentialsProvider::new(role.build_from_provider(provider).await);
    }
    provider
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whether_endpoints_are_ignored_is_the_variable_s_word_before_the_profile_s() {
        for (variable, profile, wanted) in [
            (None, None, false),
            (Some("true"), None, true),
            (Some("True"), Some("false"), true),
            (Some("false"), Some("true"), false),
            (None, Some("true"), true),
            (None, Some("no"), false),
        ] {
            let told = ignores(variable.map(str::to_owned), || profile.map(str::to_owned));
            assert_eq!(told, wanted, "{variable:?} {profile:?}");
        }
    }
}
