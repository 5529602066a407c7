//! The address of the store, and what is needed to reach it: one server, servers of a cluster, or the Sentinels of a
//! master.

use std::{io, sync::Arc};

use countersign_core::addresses;
use countersign_wire::tls;
use redis::{ConnectionInfo, IntoConnectionInfo as _, RedisConnectionInfo};
use rustls::ClientConfig;

use super::durability::{OpenError, Trust};

/// The port of a Sentinel whose address has none.
const SENTINEL_PORT: u16 = 26379;

/// How the servers of a store are reached, and what is relied upon.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// What is relied upon for writes that were acknowledged.
    pub trust: Trust,
    /// The certificates for addresses that ask for TLS. `None`: the server's must be trusted by this machine, and none is
    /// shown.
    pub tls: Option<Arc<ClientConfig>>,
}

/// An address, as far as it can be understood before anything is asked.
#[derive(Debug)]
pub(super) struct Address {
    /// The servers to begin with, with the credentials for them.
    pub(super) servers: Vec<ConnectionInfo>,
    /// The name of the master and the credentials of the servers, if the servers are Sentinels.
    pub(super) watched: Option<(String, ConnectionInfo)>,
    uses_tls: bool,
}

impl Address {
    /// Reads an address.
    ///
    /// # Errors
    ///
    /// [`OpenError::Url`], without the address, since it may contain a password.
    pub(super) fn read(text: &str) -> Result<Self, OpenError> {
        let mut address = Self { servers: Vec::new(), watched: None, uses_tls: false };
        for (n, url) in addresses::of_each_server(text).iter().enumerate() {
            let before = (address.uses_tls, address.watched.clone().map(|(name, _)| name));
            address.add(url)?;
            if n > 0 && before != (address.uses_tls, address.watched.as_ref().map(|(name, _)| name.clone())) {
                return Err(wrong("its servers are of different kinds"));
            }
        }
        Ok(address)
    }

    fn add(&mut self, url: &str) -> Result<(), OpenError> {
        let (scheme, rest) = url.split_once("://").ok_or_else(|| wrong("it doesn't begin with redis://"))?;
        let of_server = scheme.strip_suffix("+sentinel").or_else(|| scheme.strip_suffix("-sentinel"));
        let plain = match of_server.unwrap_or(scheme) {
            "rediss" => "redis",
            "valkeys" => "valkey",
            plain => plain,
        };
        self.uses_tls = plain != of_server.unwrap_or(scheme);
        let read = redis::parse_redis_url(&format!("{plain}://{rest}"));
        let mut url = read.ok_or_else(|| wrong("it isn't an address"))?;
        if self.uses_tls && url.fragment() == Some("insecure") {
            return Err(wrong(
                "certificates are always checked; name the authority's certificate in store.ca_file instead of #insecure",
            ));
        }
        let mut of_sentinel = None;
        if of_server.is_some() {
            let mut path = url.path().trim_matches('/').split('/').map(str::to_owned);
            let named = path.next().filter(|name| !name.is_empty()).or_else(|| url.fragment().map(str::to_owned));
            let master = named.ok_or_else(|| {
                wrong("it names no master; an address of Sentinels is like redis+sentinel://user:password@host1:26379,host2:26379/mymaster")
            })?;
            let query =
                |name: &str| url.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned());
            let mut login = RedisConnectionInfo::default();
            if let Some(user) = query("sentinel_user") {
                login = login.set_username(user);
            }
            if let Some(password) = query("sentinel_password") {
                login = login.set_password(password);
            }
            of_sentinel = Some((master, login));
            let database = path.next().unwrap_or_default();
            url.set_path(&database);
            url.set_fragment(None);
            if url.port().is_none() {
                let _ = url.set_port(Some(SENTINEL_PORT));
            }
        }
        let info = url.into_connection_info().map_err(|error| wrong(error.category()))?;
        match of_sentinel {
            Some((master, login)) => {
                self.servers.push(info.clone().set_redis_settings(login));
                self.watched = Some((master, info));
            }
            None => {
                self.servers.push(info);
                self.watched = None;
            }
        }
        Ok(())
    }

    /// Returns the access with the certificates that this address needs.
    ///
    /// # Errors
    ///
    /// If this machine has no certificates of authorities.
    pub(super) fn access(&self, access: &Access) -> io::Result<Access> {
        let tls = match &access.tls {
            _ if !self.uses_tls => None,
            Some(tls) => Some(Arc::clone(tls)),
            None => Some(Arc::new(tls::client(true)?)),
        };
        Ok(Access { trust: access.trust, tls })
    }
}

fn wrong(what: &str) -> OpenError {
    OpenError::Url(what.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Vec<String>, bool, Option<String>) {
        let address = Address::read(text).unwrap();
        let servers = address.servers.iter().map(|info| info.addr().to_string()).collect();
        (servers, address.uses_tls, address.watched.map(|(name, _)| name))
    }

    #[test]
    fn an_address_tells_servers_encryption_and_master() {
        let one = |server: &str| vec![server.to_owned()];
        for scheme in ["redis", "valkey"] {
            assert_eq!(read(&format!("{scheme}://host")), (one("host:6379"), false, None));
            assert_eq!(read(&format!("{scheme}s://u:p@host:1/2")), (one("host:1"), true, None));
        }
        let both = vec!["a:26379".to_owned(), "b:1".to_owned()];
        for scheme in ["redis+sentinel", "valkey+sentinel", "redis-sentinel"] {
            assert_eq!(read(&format!("{scheme}://u:p@a,b:1/main")), (both.clone(), false, Some("main".to_owned())));
        }
        assert_eq!(read("rediss+sentinel://a,b:1/main/3"), (both.clone(), true, Some("main".to_owned())));
        assert_eq!(read("redis-sentinel://:p@a,b:1#main"), (both, false, Some("main".to_owned())));
    }

    #[test]
    fn sentinels_have_credentials_of_their_own() {
        let address = Address::read("redis+sentinel://ana:p1@a/main/3?sentinel_user=bo&sentinel_password=p2").unwrap();
        let login = address.servers[0].redis_settings();
        assert_eq!((login.username(), login.password(), login.db()), (Some("bo"), Some("p2"), 0));
        let (_, info) = address.watched.unwrap();
        let login = info.redis_settings();
        assert_eq!((login.username(), login.password(), login.db()), (Some("ana"), Some("p1"), 3));
    }

    #[test]
    fn a_wrong_address_is_told_without_its_password() {
        for (text, what) in [
            ("redis://:sesame@a,rediss://:sesame@b", "different kinds"),
            ("rediss://:sesame@a/#insecure", "store.ca_file"),
            ("redis+sentinel://:sesame@a", "names no master"),
            ("http://:sesame@a", "isn't an address"),
            ("sesame", "redis://"),
            ("redis://:sesame@a/x", "config"),
        ] {
            let told = Address::read(text).unwrap_err().to_string();
            assert!(told.contains(what) && !told.contains("sesame"), "{text}: {told}");
        }
    }
}
