//! Rings without tenants.

use super::*;
use crate::series_hash::hash_bytes;
use proptest::prelude::*;

fn endpoints(count: usize) -> Vec<Endpoint> {
    (0..count).map(|number| Endpoint::new(format!("10.0.0.{number}:9090"))).collect()
}

/// The zone of each endpoint by its number.
fn zoned(zones: &[u8]) -> Vec<Endpoint> {
    let zone = |zone: &u8| if *zone == 0 { String::new() } else { format!("zone-{zone}") };
    endpoints(zones.len())
        .into_iter()
        .zip(zones)
        .map(|(endpoint, number)| endpoint.in_zone(zone(number)))
        .collect()
}

const KEYS: u32 = 100_000;

#[test]
fn a_member_added_to_ten_takes_its_part_and_moves_nothing_else() {
    for replication in 1..=3 {
        let before = Ring::ketama(&endpoints(10), replication).unwrap();
        let after = Ring::ketama(&endpoints(11), replication).unwrap();
        let mut moved = 0;
        for key in 0..KEYS {
            let hash = hash_bytes(&key.to_le_bytes());
            let (before, after) = (before.members(hash), after.members(hash));
            let kept: Vec<u16> = after.iter().copied().filter(|&member| member != 10).collect();
            assert_eq!(kept, before[..kept.len()]);
            moved += replication - kept.len();
        }
        assert!(moved > 0 && moved * 100 <= replication * KEYS as usize * 12, "{moved}");
    }
}

#[test]
fn members_have_nearly_equal_parts() {
    let ring = Ring::ketama(&endpoints(10), 1).unwrap();
    let mut keys = [0_u32; 10];
    (0..KEYS).for_each(|key| keys[usize::from(ring.members(hash_bytes(&key.to_le_bytes()))[0])] += 1);
    assert!(keys.iter().all(|&keys| keys.abs_diff(KEYS / 10) < KEYS / 100), "{keys:?}");
}

/// The shares of members are the parts of keys that they hold.
#[test]
fn shares_are_those_of_random_keys() {
    for replication in [1, 3] {
        for ring in
            [Ring::ketama(&zoned(&[1, 1, 2, 3, 3]), replication), Ring::hashmod(&endpoints(7), replication)]
        {
            let ring = ring.unwrap();
            let shares = ring.key_shares();
            assert_eq!(shares.len(), ring.len());
            assert!((shares.iter().map(|(_, share)| share).sum::<f64>() - replication as f64).abs() < 1e-6);
            let mut keys = vec![0_u32; ring.len()];
            for key in 0..KEYS {
                let members = ring.members(hash_bytes(&key.to_le_bytes()));
                members.iter().for_each(|&member| keys[usize::from(member)] += 1);
            }
            for (member, share) in shares {
                let found = f64::from(keys[usize::from(member)]) / f64::from(KEYS);
                assert!((found - share).abs() < 0.01, "{ring:?}: {member} has {share}, found {found}");
            }
        }
    }
}

/// A ring takes no more than is declared before it is built.
#[test]
fn the_footprint_is_an_upper_bound() {
    for (count, replication) in [(1, 1), (10, 3), (100, 2)] {
        let (endpoints, declared) = (endpoints(count), Ring::footprint(count, replication));
        let mut ring = None;
        let used = allocation_counter::measure(|| ring = Ring::ketama(&endpoints, replication).ok());
        assert!(ring.is_some() && used.bytes_current as usize <= declared.resident, "{used:?} {declared:?}");
        assert!(used.bytes_max as usize <= declared.building, "{used:?} {declared:?}");
    }
}

#[test]
fn replicas_wrap_around_where_sums_overflow() {
    let ring = Ring::hashmod(&endpoints(5), 3).unwrap();
    // 2⁶⁴ − 1 is a multiple of 5, and the sums behind it are 0 and 1.
    assert_eq!(*ring.members(u64::MAX), [0, 0, 1]);
    assert_eq!(*ring.members(4), [4, 0, 1]);
}

#[test]
fn hashmod_goes_by_addresses() {
    let ring = Ring::hashmod(&["b", "c", "a"].map(Endpoint::new), 3).unwrap();
    assert_eq!(*ring.members(0), [2, 0, 1]);
}

#[test]
fn impossible_rings_are_refused() {
    let message = |ring: Result<Ring, RingError>| ring.err().unwrap().to_string();
    let few = "the ring has 2 endpoints, fewer than the replication factor 3";
    assert_eq!(message(Ring::ketama(&endpoints(2), 3)), few);
    assert_eq!(message(Ring::hashmod(&endpoints(2), 3)), few);
    assert_eq!(
        message(Ring::ketama(&endpoints(9), 0)),
        "the replication factor is 0; it must be from 1 to 7"
    );
    assert_eq!(
        message(Ring::ketama(&endpoints(9), 8)),
        "the replication factor is 8; it must be from 1 to 7"
    );
    let uneven = "the ring can hold 3 replicas spread evenly over its availability zones, fewer than the replication factor \
                  4; add endpoints to its smallest zone";
    assert_eq!(message(Ring::ketama(&zoned(&[1, 2, 2, 2]), 4)), uneven);
    let twice = [Endpoint::new("a").in_zone("x"), Endpoint::new("a").in_zone("y")];
    assert_eq!(message(Ring::ketama(&twice, 1)), "the ring lists the address a in two availability zones");
    assert!(message(Ring::hashmod(&zoned(&[1, 2]), 1)).contains("hashmod does not support"));
    assert!(message(Ring::hashmod(&endpoints(65_536), 1)).contains("at most 65535"));
}

/// The replicas from a section on, by the words of Thanos' rule, until every endpoint was looked at in vain.
fn replicas_by_the_rule(
    owners: &[u16],
    start: usize,
    endpoints: &[Endpoint],
    replication: usize,
) -> Vec<u16> {
    let zone = |endpoint: u16| endpoints[usize::from(endpoint)].zone.as_str();
    let zones: std::collections::BTreeSet<&str> = endpoints.iter().map(|one| one.zone.as_str()).collect();
    let mut chosen: Vec<u16> = Vec::new();
    let mut vain = 0;
    let mut at = start;
    while chosen.len() < replication && vain <= owners.len() {
        let owner = owners[at % owners.len()];
        let held = |zone_name: &str| chosen.iter().filter(|&&one| zone(one) == zone_name).count();
        let least = zones.iter().map(|zone| held(zone)).min().unwrap();
        let crowded = zones.len() > 1 && held(zone(owner)) > 0 && held(zone(owner)) > least;
        if chosen.contains(&owner) || crowded {
            vain += 1;
        } else {
            chosen.push(owner);
            vain = 0;
        }
        at += 1;
    }
    chosen
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// A ring is refused exactly if the rule finds too few replicas, and else has those of the rule, in the section that
    /// a search of all hashes finds.
    #[test]
    fn sections_and_replicas_are_those_of_the_rule(
        zones in prop::collection::vec(0_u8..4, 1..8), replication in 1_usize..=5, mut hashes in prop::collection::vec(any::<u64>(), 8),
    ) {
        let endpoints = zoned(&zones);
        let mut sections: Vec<(u64, u16)> = (0_u16..).zip(&endpoints).flat_map(|(number, endpoint)| {
            (1..=1000).map(move |section| (hash_bytes(format!("{}:{section}", endpoint.address).as_bytes()), number))
        }).collect();
        sections.sort_unstable();
        let owners: Vec<u16> = sections.iter().map(|&(_, owner)| owner).collect();
        let last = sections.last().unwrap().0;
        hashes.extend([0, u64::MAX, sections[0].0, last, last + 1, sections[sections.len() / 2].0]);
        let ring = Ring::ketama(&endpoints, replication);
        for hash in hashes {
            let start = sections.iter().position(|&(section, _)| section >= hash).unwrap_or(0);
            let expected = replicas_by_the_rule(&owners, start, &endpoints, replication);
            match &ring {
                Ok(ring) => prop_assert_eq!(&*ring.members(hash), &expected[..]),
                Err(_) => prop_assert!(expected.len() < replication),
            }
        }
    }
}
