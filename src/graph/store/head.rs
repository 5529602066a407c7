//! The head of a thread's audit trail: the number of its entries and the hash of the last one, sealed.
//!
//! The chain alone shows only that its entries belong together: a person who can write to the store could change an
//! entry, or remove the last ones, and compute all hashes again. The seal of the head takes a key that is not in the
//! store ([`crate::keyring`]), and through the last hash it covers every entry.
//!
//! *Architecture Invariant:* a head whose seal does not hold is never sealed again. Its old seal is kept, so a record that
//! was altered stays recognizable, whatever is appended to it.

use std::ops::Deref;

use countersign_core::ids::ThreadId;

use super::{AuditEntry, ChainFault};
use crate::keyring::{Keyring, Proof, RowSeal};

/// The purpose of the seals of heads.
const PURPOSE: &str = "audit";

/// The head of a thread's audit trail.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditHead {
    /// The number of entries.
    pub seq: u64,
    /// The hash of the last entry; empty if there is none.
    pub hash: String,
    /// The seal, a [`RowSeal`] as JSON; `None` if there is no entry, or if the entries were written without keys.
    pub seal: Option<String>,
}

impl AuditHead {
    /// Returns the head after further entries. It is sealed if this head is valid.
    #[must_use]
    pub fn moved(&self, thread: &ThreadId, seq: u64, hash: String, keys: Option<&Keyring>) -> Self {
        let seal = match keys {
            Some(keys) if self.proof(thread, keys).holds() => {
                let seal = keys.seal(PURPOSE, &content(thread, seq, &hash));
                Some(serde_json::to_string(&seal).expect("a seal is plain data"))
            }
            _ => self.seal.clone(),
        };
        Self { seq, hash, seal }
    }

    /// Checks the seal. An empty record needs none.
    pub fn proof(&self, thread: &ThreadId, keys: &Keyring) -> Proof {
        if *self == Self::default() {
            return Proof::Ours;
        }
        let Some(seal) = &self.seal else { return Proof::Unsealed };
        match serde_json::from_str::<RowSeal>(seal) {
            Ok(seal) => keys.proof(PURPOSE, &content(thread, self.seq, &self.hash), Some(&seal)),
            Err(_) => Proof::Altered,
        }
    }
}

fn content<'a>(thread: &ThreadId, seq: u64, hash: &'a str) -> (String, u64, &'a str) {
    (thread.to_string(), seq, hash)
}

/// The audit trail of a thread, as it was read.
#[derive(Clone, Debug, Default)]
pub struct AuditTrail {
    /// The entries, the oldest first.
    pub entries: Vec<AuditEntry>,
    /// The seal of the head, as in [`AuditHead::seal`].
    pub seal: Option<String>,
    /// The result of checking the seal. Without keys, it is [`Proof::Unsealed`].
    pub proof: Proof,
}

impl Deref for AuditTrail {
    type Target = [AuditEntry];

    fn deref(&self) -> &[AuditEntry] {
        &self.entries
    }
}

impl IntoIterator for AuditTrail {
    type Item = AuditEntry;
    type IntoIter = std::vec::IntoIter<AuditEntry>;

    fn into_iter(self) -> Self::IntoIter {
        self.entries.into_iter()
    }
}

/// The reason why an audit trail is not the one that was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TrailFault {
    /// Another entry is in the place of this one.
    Place {
        /// The number of the entry that is there.
        found: u64,
    },
    /// The entry breaks the chain.
    Chain(ChainFault),
}

impl AuditTrail {
    /// Returns the head, which the last entry determines.
    pub fn head(&self) -> AuditHead {
        let hash = self.entries.last().map(|last| last.hash.clone()).unwrap_or_default();
        AuditHead { seq: self.entries.len() as u64, hash, seal: self.seal.clone() }
    }

    /// Checks that the entries form a chain without gaps. It does not check the seal.
    ///
    /// # Errors
    ///
    /// The position of the first entry with a fault, counted from 0, and the fault.
    pub fn check(&self, thread: &ThreadId) -> Result<(), (usize, TrailFault)> {
        let mut previous = "";
        for (nth, entry) in self.entries.iter().enumerate() {
            if entry.seq != nth as u64 + 1 {
                return Err((nth, TrailFault::Place { found: entry.seq }));
            }
            entry.check(thread, previous).map_err(|fault| (nth, TrailFault::Chain(fault)))?;
            previous = &entry.hash;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(root: &str) -> ThreadId {
        ThreadId { team: "T1".into(), channel: "C1".into(), root: root.into() }
    }

    #[test]
    fn a_head_is_sealed_from_the_first_entry_on_and_never_after_a_seal_that_does_not_hold() {
        let (keys, one) = (Keyring::new(vec![vec![1; 32]]).unwrap(), thread("1.1"));
        let moved = |head: &AuditHead, seq: u64, hash: &str| head.moved(&one, seq, hash.to_owned(), Some(&keys));
        let first = moved(&AuditHead::default(), 2, "ab");
        let second = moved(&first, 3, "cd");
        assert!(first.proof(&one, &keys).holds() && second.proof(&one, &keys).holds());

        for altered in [
            AuditHead { seq: 2, ..second.clone() }, // the last entry was removed
            AuditHead { hash: "ef".to_owned(), ..second.clone() }, // an entry was changed
            AuditHead { seal: first.seal.clone(), ..second.clone() },
            AuditHead { seal: None, ..second.clone() },
            AuditHead { seal: second.seal.clone(), ..AuditHead::default() }, // all entries were removed
        ] {
            assert!(!altered.proof(&one, &keys).holds(), "{altered:?}");
            let later = moved(&altered, 9, "12");
            assert_eq!((later.proof(&one, &keys).holds(), &later.seal), (false, &altered.seal), "{altered:?}");
        }
        assert!(!second.proof(&thread("1.2"), &keys).holds(), "it is of another thread");
        let other = Keyring::new(vec![vec![2; 32]]).unwrap();
        assert!(matches!(second.proof(&one, &other), Proof::KeyMissing(_)));
    }
}
