//! The hash slots of the partitions.
//!
//! A cluster distributes hash slots over its masters. All keys of a partition have the same hash tag, so a partition
//! is in one slot, and moves as a whole.

use countersign_core::ids::Partition;

use super::super::keys;

/// The number of hash slots of every cluster.
const SLOTS: u16 = 16384;

/// Returns the hash slot of a partition.
pub(super) fn slot_of(partition: Partition) -> u16 {
    crc16(keys::hash_tag(partition).as_bytes()) % SLOTS
}

/// CRC-16/XMODEM, by which a cluster assigns hash tags to slots.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        (0..8).fold(
            crc ^ (u16::from(*byte) << 8),
            |crc, _| {
                if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ 0x1021 }
            },
        )
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn slots_are_those_that_servers_compute() {
        assert_eq!(crc16(b"123456789"), 0x31C3);
        let slots: Vec<u16> = Partition::all().map(slot_of).collect();
        assert_eq!((slots[0], slots[1], slots[10], slots[63]), (11214, 15343, 6399, 12555)); // by CLUSTER KEYSLOT
    }

    #[test]
    fn partitions_are_spread_over_the_slots() {
        let thirds: Vec<u16> = Partition::all().map(|partition| slot_of(partition) / (SLOTS / 3)).collect();
        assert_eq!(Partition::all().map(slot_of).collect::<BTreeSet<_>>().len(), 64);
        assert!((0..3).all(|third| thirds.iter().filter(|of| **of == third).count() >= 16), "{thirds:?}");
    }
}
