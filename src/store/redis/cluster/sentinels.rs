//! The Sentinels that watch a master and its replicas. For this program these servers are a cluster with one master, of
//! which the Sentinels tell what the servers of a cluster tell of themselves.
//!
//! Sentinels learn of a failover one after the other. The one with the highest epoch counts, and more than half of those
//! in the settings have to answer: a master that is cut off with a few of them is not taken for the master.

use std::{collections::HashMap, sync::Arc};

use futures_util::future::join_all;
use redis::{ConnectionInfo, RedisError, RedisResult};
use rustls::ClientConfig;
use tokio::time::timeout;

use super::{super::server::Server, FIRST_VIEW, fault::Fault};

/// The Sentinels of a master.
#[derive(Debug)]
pub(super) struct Sentinels {
    /// The name of the master.
    pub(super) master: String,
    servers: Vec<Server>,
}

/// A master and its replicas, as a Sentinel tells them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Watched {
    epoch: u64,
    /// The address of the master.
    pub(super) master: String,
    /// The addresses of those replicas that are not down. Any of them may take over.
    pub(super) replicas: Vec<String>,
}

impl Sentinels {
    /// Prepares connections to the Sentinels of a master.
    ///
    /// # Errors
    ///
    /// Fails if an address is invalid.
    pub(super) fn new(
        master: String,
        infos: Vec<ConnectionInfo>,
        tls: Option<&Arc<ClientConfig>>,
    ) -> RedisResult<Self> {
        let servers = infos.into_iter().map(|info| Server::new(info, tls.cloned())).collect::<RedisResult<_>>()?;
        Ok(Self { master, servers })
    }

    /// Returns the addresses.
    pub(super) fn addresses(&self) -> String {
        self.servers.iter().map(Server::address).collect::<Vec<_>>().join(", ")
    }

    /// Asks which server is the master.
    ///
    /// # Errors
    ///
    /// Fails unless more than half of the Sentinels answer.
    pub(super) async fn ask(&self) -> Result<Watched, Fault> {
        let asked = join_all(self.servers.iter().map(async |server| {
            let told = timeout(FIRST_VIEW, self.ask_one(server)).await;
            told.unwrap_or_else(|_| Err((redis::ErrorKind::Io, "it does not answer in time").into()))
        }));
        let (mut told, mut silent): (Vec<Watched>, Vec<(String, RedisError)>) = (Vec::new(), Vec::new());
        for (server, answer) in self.servers.iter().zip(asked.await) {
            match answer {
                Ok(watched) => told.push(watched),
                Err(error) => silent.push((server.address(), error)),
            }
        }
        let (answered, of) = (told.len(), self.servers.len());
        match (told.into_iter().max_by_key(|watched| watched.epoch), silent.into_iter().next()) {
            (Some(watched), _) if answered * 2 > of => Ok(watched),
            (_, Some((address, source))) => {
                Err(Fault::Sentinels { master: self.master.clone(), answered, of, address, source })
            }
            _ => Err(Fault::Unknown { addresses: self.addresses() }),
        }
    }

    async fn ask_one(&self, server: &Server) -> RedisResult<Watched> {
        let mut questions = redis::pipe();
        questions.cmd("SENTINEL").arg("MASTER").arg(&self.master);
        questions.cmd("SENTINEL").arg("REPLICAS").arg(&self.master);
        let (master, replicas) = server.pipeline(&questions).await?;
        Watched::read(&master, replicas)
    }
}

impl Watched {
    fn read(master: &HashMap<String, String>, replicas: Vec<HashMap<String, String>>) -> RedisResult<Self> {
        let epoch = master.get("config-epoch").and_then(|epoch| epoch.parse().ok());
        let (Some(epoch), Some(address)) = (epoch, address_of(master)) else {
            return Err((redis::ErrorKind::UnexpectedReturnType, "the Sentinel tells no address of the master").into());
        };
        let is_down = |replica: &HashMap<String, String>| {
            let flags = replica.get("flags").map_or("", String::as_str);
            flags.split(',').any(|flag| ["s_down", "o_down", "disconnected"].contains(&flag))
        };
        let replicas = replicas.iter().filter(|replica| !is_down(replica)).filter_map(address_of);
        Ok(Self { epoch, master: address, replicas: replicas.collect() })
    }
}

fn address_of(server: &HashMap<String, String>) -> Option<String> {
    Some(format!("{}:{}", server.get("ip")?, server.get("port")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(facts: &[(&str, &str)]) -> HashMap<String, String> {
        facts.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn replicas_that_are_down_are_left_out() {
        let master = server(&[("ip", "10.0.0.1"), ("port", "6379"), ("config-epoch", "7")]);
        let replicas = vec![
            server(&[("ip", "10.0.0.2"), ("port", "6379"), ("flags", "slave")]),
            server(&[("ip", "10.0.0.3"), ("port", "6379"), ("flags", "s_down,slave,disconnected")]),
        ];
        let (master_at, replicas_at) = ("10.0.0.1:6379".to_owned(), vec!["10.0.0.2:6379".to_owned()]);
        let watched = Watched { epoch: 7, master: master_at, replicas: replicas_at };
        assert_eq!(Watched::read(&master, replicas).unwrap(), watched);
        assert!(Watched::read(&server(&[("ip", "10.0.0.1")]), Vec::new()).is_err());
    }
}
