//! The catalog that comes with a token: where the services are (Identity API, `catalog`).
//!
//! It is read as keystoneauth reads it: the entries of one type are one, an entry without a type or a place is none, and a type gives way to
//! the next name of the same service only where nothing of it fits.

use serde::Deserialize;

/// What Keystone says, in its order.
#[derive(Default, Deserialize)]
#[serde(transparent)]
pub(crate) struct Catalog(Vec<Service>);

#[derive(Deserialize)]
struct Service {
    #[serde(default, rename = "type")]
    kind: Option<String>,
    #[serde(default)]
    endpoints: Vec<Endpoint>,
}

#[derive(Deserialize)]
struct Endpoint {
    #[serde(default)]
    interface: Option<String>,
    #[serde(default)]
    region: Option<String>,
    /// The same, by its name of now.
    #[serde(default)]
    region_id: Option<String>,
    #[serde(default)]
    url: Option<String>,
}

impl Endpoint {
    fn region(&self) -> Option<&str> {
        let region = self.region_id.as_deref().filter(|region| !region.is_empty());
        region.or(self.region.as_deref())
    }

    fn url(&self) -> Option<&str> {
        self.url.as_deref().filter(|url| !url.is_empty())
    }
}

impl Catalog {
    /// All of that type that can be asked.
    fn of(&self, kind: &str) -> impl Iterator<Item = &Endpoint> {
        let services = self.0.iter().filter(move |service| service.kind.as_deref() == Some(kind));
        services.flat_map(|service| &service.endpoints).filter(|endpoint| endpoint.url().is_some())
    }

    /// Where a service is: of the first of those types, and of that by the first of those interfaces, of which there is one in that region.
    pub(crate) fn endpoint(
        &self,
        kinds: &[&str],
        interfaces: &[String],
        region: Option<&str>,
    ) -> Option<&str> {
        let fitting = |kind: &&str, interface: &String| {
            let mut all = self.of(kind);
            let fits = |endpoint: &&Endpoint| {
                endpoint.interface.as_ref() == Some(interface)
                    && region.is_none_or(|region| endpoint.region() == Some(region))
            };
            all.find(fits)?.url()
        };
        kinds.iter().find_map(|kind| interfaces.iter().find_map(|interface| fitting(kind, interface)))
    }

    /// Its regions, for who named none of them.
    pub(crate) fn regions(&self) -> Vec<&str> {
        let endpoints = self.0.iter().flat_map(|service| &service.endpoints);
        sorted(endpoints.filter_map(Endpoint::region).collect())
    }

    /// That there is no such endpoint, and which ones of the service there are.
    pub(crate) fn without(&self, kinds: &[&str], interfaces: &[String], region: Option<&str>) -> String {
        let wanted =
            format!("the catalog has no {} endpoint of {}", interfaces.join(" or "), kinds.join(" or "));
        let Some(region) = region else { return format!("{wanted}; {}", self.those_of(kinds)) };
        let regions = self.regions();
        match regions.contains(&region) {
            true => format!("{wanted} in the region {region:?}; {}", self.those_of(kinds)),
            false => format!("{wanted} in the region {region:?} (there is {})", regions.join(", ")),
        }
    }

    fn those_of(&self, kinds: &[&str]) -> String {
        let words = |kind: &&str, endpoint: &Endpoint| {
            let interface = endpoint.interface.as_deref().unwrap_or("no interface");
            format!("{kind} {interface} in {}", endpoint.region().unwrap_or("no region"))
        };
        let all = kinds.iter().flat_map(|kind| self.of(kind).map(move |endpoint| words(kind, endpoint)));
        let all = sorted(all.collect());
        if all.is_empty() { "it has none at all".to_owned() } else { format!("it has {}", all.join(", ")) }
    }
}

fn sorted<T: Ord>(mut all: Vec<T>) -> Vec<T> {
    all.sort_unstable();
    all.dedup();
    all
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::super::Service;
    use super::*;

    /// keystoneauth's own cases, and some of what else clouds say. keystoneauth itself is held to the same file
    /// (tests/peers/openstack/referee.py).
    #[test]
    fn each_service_is_found_where_keystoneauth_finds_it() {
        let file: Value = serde_json::from_str(include_str!("cases/catalog.json")).expect("JSON");
        let cases = file["cases"].as_array().expect("a list");
        assert!(cases.len() > 20, "{}", cases.len());
        for case in cases {
            let catalog = file["catalogs"][case["of"].as_str().expect("a name")].clone();
            let catalog: Catalog = serde_json::from_value(catalog).expect("a catalog");
            let services = [Service::Compute, Service::Volume, Service::Image];
            let service = services.into_iter().find(|one| case["type"] == one.kinds()[0]).expect("known");
            let interfaces: Vec<String> = serde_json::from_value(case["interface"].clone()).expect("a list");
            let found = catalog.endpoint(service.kinds(), &interfaces, case["region"].as_str());
            assert_eq!(found, case["url"].as_str(), "{case}");
        }
    }

    #[test]
    fn what_the_catalog_lacks_is_told_with_what_it_has() {
        let file: Value = serde_json::from_str(include_str!("cases/catalog.json")).expect("JSON");
        let catalog: Catalog = serde_json::from_value(file["catalogs"]["odd"].clone()).expect("a catalog");
        let kinds = Service::Volume.kinds();
        for (interfaces, region, words) in [
            (
                ["admin"].as_slice(),
                Some("Two"),
                "the catalog has no admin endpoint of block-storage or volumev3 or block-store in the region \"Two\"; it has block-storage \
                 public in One, block-store public in Two, volumev3 internal in One, volumev3 internal in Two",
            ),
            (&["admin", "internal"], Some("West"), "in the region \"West\" (there is One, Two)"),
            (
                &["admin"],
                None,
                "the catalog has no admin endpoint of block-storage or volumev3 or block-store; it has block-storage",
            ),
        ] {
            let interfaces: Vec<String> = interfaces.iter().map(ToString::to_string).collect();
            let told = catalog.without(kinds, &interfaces, region);
            assert!(told.contains(words), "{told}");
        }
        let told = Catalog::default().without(&["image"], &["public".to_owned()], None);
        assert!(told.ends_with("of image; it has none at all"), "{told}");
    }
}
