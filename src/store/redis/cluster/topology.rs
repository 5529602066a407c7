//! The servers of a cluster, as they describe it themselves.
//!
//! Each server answers `CLUSTER NODES` with its own view, which may be outdated, above all after a failover. Of several
//! views that disagree on the master of a slot, the one with the highest epoch counts: so the servers settle it among
//! themselves. `CLUSTER SLOTS` leaves out the replicas that have failed or never had all data.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use countersign_core::ids::Partition;
use redis::Value;

use super::{member::Member, slots::slot_of};

/// The view that one server has of the cluster.
#[derive(Debug)]
pub(super) struct View {
    nodes: Vec<Node>,
    followed: Followed,
}

/// The masters with replicas that may take over, by their ids.
#[derive(Debug)]
pub(super) struct Followed(BTreeSet<String>);

impl Followed {
    /// Reads an answer to `CLUSTER SLOTS`.
    pub(super) fn read(answer: Value) -> Self {
        let ranges: Vec<Vec<Value>> = redis::from_redis_value(answer).unwrap_or_default();
        // Each range has its first and last slot, its master, and the master's replicas.
        let followed = ranges.into_iter().filter(|range| range.len() > 3).filter_map(|range| {
            let master: Vec<Value> = redis::from_redis_value(range.into_iter().nth(2)?).ok()?;
            redis::from_redis_value(master.into_iter().nth(2)?).ok()
        });
        Self(followed.collect())
    }

    /// Returns true if the master with this id is among them.
    pub(super) fn has(&self, id: &str) -> bool {
        self.0.contains(id)
    }
}

/// A server in a view.
#[derive(Debug, PartialEq, Eq)]
struct Node {
    id: String,
    address: String,
    /// True for the server whose view it is.
    is_itself: bool,
    /// True if the cluster counts it as failed, or does not know its address.
    is_lost: bool,
    /// The id of its master; `None` for a master.
    replicates: Option<String>,
    /// The epoch in which a master got its slots.
    epoch: u64,
    /// Ranges of slots, with both ends.
    slots: Vec<(u16, u16)>,
    /// The slots that it gives to another server, or gets from it, with the id of that one. A server tells this of itself
    /// only.
    moves: Vec<(u16, Direction, String)>,
}

/// The direction in which a slot is being moved, as a server sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    To,
    From,
}

impl View {
    /// Reads the answers to `CLUSTER NODES` and `CLUSTER SLOTS`. A server that does not know its own host has the one at
    /// `address`, at which it was asked. Lines that cannot be read are left out.
    /// `named` prefers the names that servers announce to their addresses: certificates are for names.
    pub(super) fn read(nodes: &str, slots: Value, address: &str, named: bool) -> Self {
        let nodes = nodes.lines().filter_map(|line| Node::read(line, address, named)).collect();
        Self { nodes, followed: Followed::read(slots) }
    }

    /// Returns the id of the server whose view it is.
    pub(super) fn own_id(&self) -> Option<&str> {
        self.nodes.iter().find(|node| node.is_itself).map(|node| node.id.as_str())
    }

    fn replicas_of<'a>(&'a self, id: &'a str) -> impl Iterator<Item = &'a Node> {
        self.nodes.iter().filter(move |node| !node.is_lost && node.replicates.as_deref() == Some(id))
    }

    fn is_of(&self, id: &str) -> bool {
        self.nodes.iter().any(|node| node.is_itself && node.id == id)
    }

    /// Returns the move of a slot, if it is being moved.
    fn move_of(&self, slot: u16) -> Option<SlotMove> {
        let moves = self.nodes.iter().flat_map(|node| node.moves.iter().map(move |of| (node, of)));
        let (node, (_, direction, other)) = moves.into_iter().find(|(_, (moved, ..))| *moved == slot)?;
        let other = self.nodes.iter().find(|node| node.id == *other).map_or(other, |node| &node.address).clone();
        Some(match direction {
            Direction::To => SlotMove { slot, from: node.address.clone(), to: other },
            Direction::From => SlotMove { slot, from: other, to: node.address.clone() },
        })
    }

    fn masters(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter().filter(|node| node.replicates.is_none() && !node.slots.is_empty())
    }
}

impl Node {
    fn read(line: &str, asked: &str, named: bool) -> Option<Self> {
        let mut words = line.split_whitespace();
        let (id, address, flags, master) = (words.next()?, words.next()?, words.next()?, words.next()?);
        let epoch = words.nth(2)?.parse().ok()?;
        let has = |flag: &str| flags.split(',').any(|one| one == flag);
        let name = address.split(',').nth(1).filter(|name| named && !name.is_empty());
        let address = address.split(['@', ',']).next()?;
        let with_name = name.and_then(|name| Some(format!("{name}:{}", address.rsplit_once(':')?.1)));
        let address = with_name.as_deref().unwrap_or(address);
        let address = match address.strip_prefix(':').filter(|port| !port.contains(':')) {
            Some(port) => format!("{}:{port}", asked.rsplit_once(':')?.0),
            None => address.to_owned(),
        };
        let moved = |word: &str| {
            let (slot, direction) = word.strip_prefix('[')?.strip_suffix(']')?.split_once('-')?;
            let (direction, id) = match direction.split_at_checked(2)? {
                (">-", id) => (Direction::To, id),
                ("<-", id) => (Direction::From, id),
                _ => return None,
            };
            Some((slot.parse().ok()?, direction, id.to_owned()))
        };
        let range = |word: &str| {
            let (first, last) = word.split_once('-').unwrap_or((word, word));
            Some((first.parse().ok()?, last.parse().ok()?))
        };
        Some(Self {
            id: id.to_owned(),
            address,
            is_itself: has("myself"),
            is_lost: has("fail") || has("noaddr") || has("handshake"),
            replicates: has("slave").then(|| master.to_owned()),
            epoch,
            // After the link state. Slots that are being moved are in brackets, and not a range.
            moves: words.clone().skip(1).filter_map(moved).collect(),
            slots: words.skip(1).filter_map(range).collect(),
        })
    }
}

/// The servers of a cluster, and the master of each partition.
#[derive(Debug, Default)]
pub(super) struct Topology {
    masters: BTreeMap<String, Master>,
    of_partition: BTreeMap<Partition, Arc<Member>>,
    moves: BTreeMap<Partition, SlotMove>,
    /// The ids of all servers, by their addresses.
    ids: BTreeMap<String, String>,
}

/// A slot that is being moved from one server to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SlotMove {
    /// The slot.
    pub(super) slot: u16,
    /// The address of the server that has it, or the id if the address is not known.
    pub(super) from: String,
    /// The address of the server that gets it, or the id if the address is not known.
    pub(super) to: String,
}

/// A master with its replicas.
#[derive(Debug)]
pub(super) struct Master {
    /// The master.
    pub(super) member: Arc<Member>,
    /// Those of its replicas that have not failed.
    pub(super) replicas: Vec<Arc<Member>>,
    /// True if one of them may take over.
    pub(super) is_followed: bool,
}

impl Topology {
    /// Puts views together. `member` returns the server at an address.
    pub(super) fn of(views: &[View], member: impl Fn(&str) -> Arc<Member>) -> Self {
        let nodes = views.iter().flat_map(|view| &view.nodes);
        let ids = nodes.map(|node| (node.address.clone(), node.id.clone())).collect();
        let mut topology = Self { ids, ..Self::default() };
        for partition in Partition::all() {
            let slot = slot_of(partition);
            if let Some(moved) = views.iter().find_map(|view| view.move_of(slot)) {
                topology.moves.insert(partition, moved);
            }
            let has_it = |node: &&Node| node.slots.iter().any(|(first, last)| (*first..=*last).contains(&slot));
            let masters = views.iter().flat_map(View::masters).filter(has_it);
            let Some(node) = masters.max_by_key(|node| node.epoch) else { continue };
            let master = topology.masters.entry(node.address.clone()).or_insert_with(|| {
                let own = views.iter().find(|view| view.is_of(&node.id)).or_else(|| views.first());
                let replicas = own.into_iter().flat_map(|view| view.replicas_of(&node.id));
                Master {
                    member: member(&node.address),
                    replicas: replicas.map(|replica| member(&replica.address)).collect(),
                    is_followed: own.is_some_and(|view| view.followed.has(&node.id)),
                }
            });
            topology.of_partition.insert(partition, Arc::clone(&master.member));
        }
        topology
    }

    /// Returns the topology of one master and the replicas that may take over.
    pub(super) fn of_one(member: Arc<Member>, replicas: Vec<Arc<Member>>) -> Self {
        let of_partition = Partition::all().map(|partition| (partition, Arc::clone(&member))).collect();
        let (address, is_followed) = (member.address().to_owned(), !replicas.is_empty());
        let masters = BTreeMap::from([(address, Master { member, replicas, is_followed })]);
        Self { masters, of_partition, ..Self::default() }
    }

    /// Returns the id of the server at an address, if the cluster tells it.
    pub(super) fn id_of(&self, member: &Member) -> Option<&str> {
        self.ids.get(member.address()).map(String::as_str)
    }

    /// Returns true if a server has this id, or none is known.
    pub(super) fn has_id(&self, id: &str) -> bool {
        self.ids.is_empty() || self.ids.values().any(|known| known == id)
    }

    /// Returns the masters.
    pub(super) fn masters(&self) -> impl Iterator<Item = &Master> {
        self.masters.values()
    }

    /// Returns the master of a partition.
    pub(super) fn master_of(&self, partition: Partition) -> Option<&Arc<Member>> {
        self.of_partition.get(&partition)
    }

    /// Returns the partitions of a master.
    pub(super) fn partitions_of(&self, member: &Arc<Member>) -> impl Iterator<Item = Partition> {
        self.of_partition.iter().filter(|(_, master)| Arc::ptr_eq(master, member)).map(|(partition, _)| *partition)
    }

    /// Returns the partitions whose slots are being moved.
    pub(super) fn moves(&self) -> &BTreeMap<Partition, SlotMove> {
        &self.moves
    }

    /// Returns the partitions that have no master.
    pub(super) fn unserved(&self) -> impl Iterator<Item = Partition> {
        Partition::all().filter(|partition| !self.of_partition.contains_key(partition))
    }

    /// Returns all servers, the masters first.
    pub(super) fn members(&self) -> impl Iterator<Item = &Arc<Member>> {
        let replicas = self.masters().flat_map(|master| &master.replicas);
        self.masters().map(|master| &master.member).chain(replicas)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = "\
a1 10.0.0.1:7001@17001,redis-1 myself,master - 0 1795819375000 1 connected 0-8000 8002 [93-<-b2]
b2 10.0.0.2:7002@17002 master - 0 1795819376113 2 connected 8001 8003-16383
c3 :7003@17003 slave a1 0 1795819377115 1 connected
d4 10.0.0.4:7004@17004 slave,fail? a1 0 1795819377115 1 disconnected
e5 10.0.0.5:7005@17005 slave,fail b2 0 1795819377115 2 disconnected
a line of a later version
";
    const AFTER: &str = "\
a1 10.0.0.1:7001@17001 master,fail - 0 1795819375000 1 connected
b2 10.0.0.2:7002@17002 myself,master - 0 1795819376113 2 connected 8001 8003-16383
c3 10.0.0.3:7003@17003 master - 0 1795819377115 3 connected 0-8000 8002
d4 10.0.0.4:7004@17004 slave c3 0 1795819377115 3 connected
";

    fn topology(views: &[(&str, &str)]) -> Topology {
        let views: Vec<_> = views
            .iter()
            .map(|(answer, address)| View::read(answer, Value::Array(Vec::new()), address, false))
            .collect();
        Topology::of(&views, Member::for_test)
    }

    fn servers(topology: &Topology) -> Vec<(String, Vec<String>)> {
        let address = |member: &Arc<Member>| member.address().to_owned();
        topology.masters().map(|of| (address(&of.member), of.replicas.iter().map(address).collect())).collect()
    }

    #[test]
    fn a_view_tells_masters_and_replicas() {
        let topology = topology(&[(BEFORE, "10.0.0.1:7001")]);
        let first = ("10.0.0.1:7001".to_owned(), vec!["10.0.0.1:7003".to_owned(), "10.0.0.4:7004".to_owned()]);
        assert_eq!(servers(&topology), [first, ("10.0.0.2:7002".to_owned(), vec![])]);
        assert_eq!(topology.unserved().count(), 0);
        for partition in Partition::all() {
            let expected = if slot_of(partition) <= 8000 { "10.0.0.1:7001" } else { "10.0.0.2:7002" };
            assert_eq!(topology.master_of(partition).unwrap().address(), expected);
        }
    }

    #[test]
    fn a_slot_that_is_being_moved_is_told_by_either_server() {
        let partition = Partition::all().next().unwrap();
        let slot = slot_of(partition);
        let rest = "0 1795819375000 1 connected 0-16383";
        let gives = format!(
            "a1 10.0.0.1:7001@17001 myself,master - {rest} [{slot}->-b2]\nb2 10.0.0.2:7002@17002 master - 0 0 2 connected"
        );
        let gets = format!(
            "a1 10.0.0.1:7001@17001 master - {rest}\nb2 10.0.0.2:7002@17002 myself,master - 0 0 2 connected [{slot}-<-a1]"
        );
        let expected = SlotMove { slot, from: "10.0.0.1:7001".to_owned(), to: "10.0.0.2:7002".to_owned() };
        for view in [(gives.as_str(), "10.0.0.1:7001"), (gets.as_str(), "10.0.0.2:7002")] {
            assert_eq!(topology(&[view]).moves(), &BTreeMap::from([(partition, expected.clone())]));
        }
    }

    #[test]
    fn the_latest_epoch_decides_who_has_a_slot() {
        for views in [
            [(BEFORE, "10.0.0.1:7001"), (AFTER, "10.0.0.2:7002")],
            [(AFTER, "10.0.0.2:7002"), (BEFORE, "10.0.0.1:7001")],
        ] {
            let topology = topology(&views);
            let masters: Vec<_> = servers(&topology).into_iter().map(|(master, _)| master).collect();
            assert_eq!(masters, ["10.0.0.2:7002", "10.0.0.3:7003"]);
        }
    }

    #[test]
    fn a_name_is_preferred_where_certificates_are_checked() {
        let view = View::read(BEFORE, Value::Array(Vec::new()), "10.0.0.1:7001", true);
        let topology = Topology::of(&[view], Member::for_test);
        let masters: Vec<_> = topology.masters().map(|master| master.member.address().to_owned()).collect();
        assert_eq!(masters, ["10.0.0.2:7002", "redis-1:7001"]);
        assert_eq!(topology.id_of(&Member::for_test("redis-1:7001")), Some("a1"));
        assert!(topology.has_id("d4") && !topology.has_id("f6"));
    }

    #[test]
    fn a_slot_that_nobody_has_is_told() {
        let topology = topology(&[("a1 10.0.0.1:7001@17001 myself,master - 0 1 1 connected 0-8000", "10.0.0.1:7001")]);
        let unserved: Vec<_> = Partition::all().filter(|partition| slot_of(*partition) > 8000).collect();
        assert_eq!(topology.unserved().collect::<Vec<_>>(), unserved);
    }
}
