//! `clouds.yaml`, and `secure.yaml` beside it, as OpenStack's own clients read them: one cloud of it.
//!
//! # Invariants
//!
//! - Whom to believe is never switched off. Shown by `a_cloud_is_read_as_openstacksdk_reads_it_or_refused`.
//! - A file with a secret in it is nobody else's to read (S18). Shown by
//!   `a_secret_anywhere_closes_its_file`.

mod shape;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use picket_driver::{Secret, source};
use picket_reach::address;
use reqwest::Url;

use self::shape::{Auth, Cloud, File, OneOrMany};
use super::keystone::{IdOrName, Login, Scope};

/// One cloud, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CloudSettings {
    /// Keystone, with `/v3` and without a slash at its end.
    pub(crate) identity: Url,
    pub(crate) login: Login,
    pub(crate) region: Option<String>,
    /// Each `public`, `internal` or `admin`; the first one is asked that the catalog has.
    pub(crate) interfaces: Vec<String>,
    pub(crate) ca_file: Option<PathBuf>,
    /// Where services are, where the catalog is not to be believed: by their type.
    pub(crate) endpoints: BTreeMap<&'static str, Url>,
}

/// Reads the cloud of that name, in that region of it, else in its first one; all that is wrong with it, at once. No message has a secret in it.
pub(crate) fn read(file: &Path, name: &str, region: Option<&str>) -> Result<CloudSettings, Vec<String>> {
    let one = |why: String| vec![why];
    let clouds = parse(file).map_err(one)?;
    let beside = file.with_file_name("secure.yaml");
    let secure = if beside.exists() { parse(&beside).map_err(one)? } else { BTreeMap::new() };
    let Some(cloud) = clouds.get(name) else {
        let known: Vec<&str> = clouds.keys().map(String::as_str).collect();
        let known =
            if known.is_empty() { "it has none".to_owned() } else { format!("it has {}", known.join(", ")) };
        return Err(one(format!("{} has no cloud {name:?}; {known}", file.display())));
    };
    let mut wrong = Vec::new();
    for (place, of_it) in [(file, Some(cloud)), (beside.as_path(), secure.get(name))] {
        if of_it.is_some_and(Cloud::has_secret) {
            wrong.extend(open_to_all(place));
        }
    }
    let cloud = cloud.clone().under(secure.get(name).cloned().unwrap_or_default());
    let place = format!("{}: clouds.{name}", file.display());
    let mut tell = |what| wrong.push(format!("{place}.{what}"));
    let (cloud, region) = in_region(cloud, region, &mut tell);
    let made = checked(cloud.gathered(), region, &mut tell);
    match made {
        Some(made) if wrong.is_empty() => Ok(made),
        _ => Err(wrong),
    }
}

fn parse(file: &Path) -> Result<BTreeMap<String, Cloud>, String> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| format!("{} cannot be read: {error}", file.display()))?;
    source::unchanged(file).map_err(|why| format!("{}: {why}", file.display()))?;
    // What a parser says of a place may repeat the text that stands there, which may be a secret: the line alone is told.
    let parsed: Result<File, serde_saphyr::Error> = serde_saphyr::from_str(&text);
    let parsed = parsed.map_err(|error| {
        let line = error.location().map(|at| format!(", line {}", at.line())).unwrap_or_default();
        format!("{}{line}: it is no clouds.yaml: expected YAML with a table clouds, and in it a table for each cloud", file.display())
    })?;
    Ok(parsed.clouds)
}

fn open_to_all(file: &Path) -> Option<String> {
    let place = file.display();
    source::private(file).err().map(|why| format!("{place} has a secret in it, and {why}"))
}

/// The cloud as it is in that region, by its `regions`; and the region, which is the first one where none is asked for.
fn in_region(
    mut cloud: Cloud,
    asked: Option<&str>,
    wrong: &mut dyn FnMut(String),
) -> (Cloud, Option<String>) {
    let listed = cloud.regions.take().unwrap_or_default();
    let names: Vec<String> = match &cloud.region_name {
        _ if !listed.is_empty() => listed.iter().map(|region| region.name.clone()).collect(),
        Some(OneOrMany(names)) => {
            names.iter().flat_map(|name| name.split(',')).map(|name| name.trim().to_owned()).collect()
        }
        None => Vec::new(),
    };
    // A single region_name is the default of whoever names no region.
    let is_a_list = !listed.is_empty() || names.len() > 1;
    if let Some(asked) = asked
        && is_a_list
        && !names.iter().any(|name| name == asked)
    {
        wrong(format!("regions: there is no {asked:?}; there is {}", names.join(", ")));
    }
    let region = asked.map(str::to_owned).or_else(|| names.into_iter().next());
    let region = region.filter(|region| !region.is_empty());
    let values = listed.into_iter().find(|one| Some(&one.name) == region.as_ref()).map(|one| one.values);
    (cloud.under(values.unwrap_or_default()), region)
}

/// Whether it is one of those words, in which YAML 1.1 has yes and no; `None`: it says nothing.
fn is_any_of(word: Option<&str>, of: [&str; 3]) -> Option<bool> {
    Some(of.contains(&word?.to_ascii_lowercase().as_str()))
}

fn checked(cloud: Cloud, region: Option<String>, wrong: &mut dyn FnMut(String)) -> Option<CloudSettings> {
    let is_verified = is_any_of(cloud.verify.as_deref(), ["true", "yes", "on"]).unwrap_or(true);
    let is_secure = is_any_of(cloud.insecure.as_deref(), ["false", "no", "off"]).unwrap_or(true);
    if !is_verified || !is_secure {
        wrong("verify: whoever answers would be believed, and could say off of what is on; name the CA in cacert".to_owned());
    }
    if cloud.cert.is_some() {
        wrong("cert: certificates of clients are not known to this driver; use a password or an application credential".to_owned());
    }
    if let Some(profile) = cloud.profile.as_ref().or(cloud.cloud.as_ref()) {
        wrong(format!(
            "profile: profiles of vendors ({profile:?}) are not read; write auth_url, and what else it stands for, here"
        ));
    }
    let identity = identity(cloud.auth.auth_url.as_deref(), region.as_deref(), wrong);
    let login = login(&cloud.auth, cloud.auth_type.as_deref(), wrong);
    let interfaces = interfaces(cloud.interface.or(cloud.endpoint_type), wrong);
    let ca_file = cloud.cacert.as_deref().map(|path| under_home(path, std::env::var_os("HOME")));
    let ca_file = ca_file.transpose().unwrap_or_else(|why| {
        wrong(format!("cacert: {why}"));
        None
    });
    let volume = cloud.block_storage_endpoint_override.or(cloud.volume_endpoint_override);
    let given = [
        ("compute", cloud.compute_endpoint_override),
        ("block-storage", volume),
        ("image", cloud.image_endpoint_override),
    ];
    let mut endpoints = BTreeMap::new();
    for (service, url) in given {
        let Some(url) = url else { continue };
        match web_url(&url) {
            Ok(url) => drop(endpoints.insert(service, url)),
            Err(why) => wrong(format!("{}_endpoint_override: {why}", service.replace('-', "_"))),
        }
    }
    Some(CloudSettings { identity: identity?, login: login?, region, interfaces, ca_file, endpoints })
}

fn interfaces(given: Option<OneOrMany>, wrong: &mut dyn FnMut(String)) -> Vec<String> {
    let OneOrMany(given) = given.unwrap_or_else(|| OneOrMany(vec!["public".to_owned()]));
    let interfaces: Vec<String> = given.iter().map(|one| one.trim_end_matches("URL").to_owned()).collect();
    let is_right = |one: &String| ["public", "internal", "admin"].contains(&one.as_str());
    if interfaces.is_empty() || !interfaces.iter().all(is_right) {
        wrong(format!("interface: expected public, internal or admin, or a list of them, found {given:?}"));
    }
    interfaces
}

/// A path, with `~` for that home.
fn under_home(path: &str, home: Option<OsString>) -> Result<PathBuf, String> {
    match path.strip_prefix('~') {
        None => Ok(PathBuf::from(path)),
        Some(rest) if rest.is_empty() || rest.starts_with('/') => {
            let home = home.filter(|home| !home.is_empty());
            let home =
                home.ok_or_else(|| format!("{path:?}: this process has no HOME; write the whole path"))?;
            Ok(Path::new(&home).join(rest.trim_start_matches('/')))
        }
        Some(_) => Err(format!("{path:?} is in another user's home; write the whole path")),
    }
}

/// A URL that can be asked, without a slash at its end; also one that a catalog names.
pub(crate) fn web_url(text: &str) -> Result<Url, String> {
    let url =
        Url::parse(text.trim_end_matches('/')).map_err(|error| format!("{text:?} is no URL: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        return Err(format!("{text:?} is no place on the web: expected https://HOST/…"));
    }
    if !address::is_private(&url) {
        return Err(format!(
            "{text:?} is not https: whoever is on the way could say that a server is off, and reads the password (http is for this machine alone)"
        ));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("has a user or a password in it, which belong under auth".to_owned());
    }
    Ok(url)
}

fn identity(url: Option<&str>, region: Option<&str>, wrong: &mut dyn FnMut(String)) -> Option<Url> {
    let Some(url) = url else {
        wrong("auth.auth_url: is missing, for example https://cloud.example.org:5000/v3".to_owned());
        return None;
    };
    let url = region.map_or_else(|| url.to_owned(), |region| url.replace("{region_name}", region));
    if url.contains(['{', '}']) {
        wrong(format!(
            "auth.auth_url: {url:?}: of what stands in braces {{region_name}} alone is known, where there is a region"
        ));
        return None;
    }
    match web_url(&url) {
        Ok(mut url) => {
            let path = url.path().trim_end_matches('/').to_owned();
            match path.rsplit('/').next() {
                Some("v3") => {}
                Some(last) if last.starts_with("v2") => {
                    wrong(format!("auth.auth_url: {last} is not known any more; expected Keystone's v3"));
                }
                _ => url.set_path(&format!("{path}/v3")),
            }
            Some(url)
        }
        Err(why) => {
            wrong(format!("auth.auth_url: {why}"));
            None
        }
    }
}

fn login(auth: &Auth, kind: Option<&str>, wrong: &mut dyn FnMut(String)) -> Option<Login> {
    let by_credential = auth.application_credential_secret.is_some();
    match kind {
        Some("v3applicationcredential" | "applicationcredential") => application_credential(auth, wrong),
        None if by_credential => application_credential(auth, wrong),
        None | Some("password" | "v3password") => password(auth, wrong),
        Some(other) => {
            wrong(format!("auth_type: expected v3password or v3applicationcredential, found {other:?}"));
            None
        }
    }
}

fn named(id: &Option<String>, name: &Option<String>, of: Option<IdOrName>) -> Option<IdOrName> {
    match (id, name) {
        (Some(id), _) => Some(IdOrName::Id(id.clone())),
        (None, Some(name)) => Some(IdOrName::Name { name: name.clone(), of: of.map(Box::new) }),
        (None, None) => None,
    }
}

/// The domain of a user or a project; the cloud's own default for what names none.
fn domain(id: &Option<String>, name: &Option<String>, auth: &Auth) -> IdOrName {
    let own = named(id, name, None).or_else(|| named(&auth.domain_id, &auth.domain_name, None));
    own.unwrap_or_else(|| IdOrName::Id("default".to_owned()))
}

fn user(auth: &Auth) -> Option<IdOrName> {
    let of = domain(&auth.user_domain_id, &auth.user_domain_name, auth);
    named(&auth.user_id, &auth.username, Some(of))
}

fn password(auth: &Auth, wrong: &mut dyn FnMut(String)) -> Option<Login> {
    let user = user(auth);
    if user.is_none() {
        wrong("auth: username or user_id is missing".to_owned());
    }
    if auth.password.as_deref().is_none_or(str::is_empty) {
        wrong("auth.password: is missing; it may stand in secure.yaml beside".to_owned());
    }
    let of = domain(&auth.project_domain_id, &auth.project_domain_name, auth);
    let scope = match (named(&auth.project_id, &auth.project_name, Some(of)), auth.system_scope.as_deref()) {
        (Some(project), None) => Some(Scope::Project(project)),
        (None, Some("all")) => Some(Scope::System),
        (Some(_), Some(_)) => {
            wrong("auth: project and system_scope are both there: a token has one of them".to_owned());
            None
        }
        (None, _) => {
            wrong("auth: project_name or project_id is missing".to_owned());
            None
        }
    };
    Some(Login::Password { user: user?, password: Secret::new(auth.password.clone()?), scope: scope? })
}

fn application_credential(auth: &Auth, wrong: &mut dyn FnMut(String)) -> Option<Login> {
    let owner = user(auth);
    let by_name = auth.application_credential_id.is_none() && auth.application_credential_name.is_some();
    if by_name && owner.is_none() {
        wrong("auth: application_credential_name wants username or user_id beside it; or use application_credential_id".to_owned());
    }
    let credential = named(&auth.application_credential_id, &auth.application_credential_name, owner);
    if credential.is_none() {
        wrong("auth: application_credential_id is missing".to_owned());
    }
    if auth.application_credential_secret.as_deref().is_none_or(str::is_empty) {
        wrong(
            "auth.application_credential_secret: is missing; it may stand in secure.yaml beside".to_owned(),
        );
    }
    let secret = Secret::new(auth.application_credential_secret.clone()?);
    Some(Login::ApplicationCredential { credential: credential?, secret })
}

#[cfg(test)]
mod tests;
