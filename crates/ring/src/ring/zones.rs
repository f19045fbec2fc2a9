//! The availability zones of a ring.

use crate::config::Endpoint;
use crate::replicas::Replicas;
use std::collections::HashMap;

/// The zone of each endpoint. Endpoints without a zone are in one of an empty name.
pub(crate) struct Zones {
    of: Box<[u16]>,
    names: Box<[Box<str>]>,
}

impl Zones {
    pub(crate) fn new(endpoints: &[Endpoint]) -> Self {
        let (mut names, mut numbers) = (Vec::<Box<str>>::new(), HashMap::new());
        let number = |endpoint: &Endpoint| {
            *numbers.entry(endpoint.zone.clone()).or_insert_with(|| {
                names.push(endpoint.zone.as_str().into());
                // There are no more zones than endpoints, and no more endpoints than 65,535.
                u16::try_from(names.len() - 1).unwrap_or(u16::MAX)
            })
        };
        let of = endpoints.iter().map(number).collect();
        Self { of, names: names.into() }
    }

    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }

    pub(crate) fn of(&self, endpoint: u16) -> u16 {
        self.of.get(usize::from(endpoint)).copied().unwrap_or_default()
    }

    pub(crate) fn name(&self, zone: u16) -> &str {
        self.names.get(usize::from(zone)).map_or("", |name| name)
    }

    /// How many replicas the endpoints that `has` accepts can hold, spread evenly: a zone takes one more than the smallest zone has.
    pub(crate) fn possible_replicas(&self, has: impl Fn(u16) -> bool) -> usize {
        let counts = self.counts(has);
        let zones = counts.iter().copied().filter(|&count| count > 0);
        let Some(smallest) = zones.clone().min() else { return 0 };
        if zones.clone().count() == 1 { smallest } else { zones.map(|count| count.min(smallest + 1)).sum() }
    }

    /// How many zones the endpoints have that `has` accepts.
    pub(crate) fn count(&self, has: impl Fn(u16) -> bool) -> usize {
        self.counts(has).iter().filter(|&&count| count > 0).count()
    }

    fn counts(&self, has: impl Fn(u16) -> bool) -> Vec<usize> {
        let mut counts = vec![0; self.len()];
        for (endpoint, &zone) in (0_u16..).zip(&self.of) {
            if has(endpoint)
                && let Some(count) = counts.get_mut(usize::from(zone))
            {
                *count += 1;
            }
        }
        counts
    }

    /// Whether an endpoint may hold the next replica besides those chosen, in a ring of `zones` zones: its zone must not
    /// hold more than the zone that holds least.
    pub(crate) fn admits(&self, zones: usize, chosen: &Replicas, endpoint: u16) -> bool {
        if zones < 2 {
            return true;
        }
        let held = |zone| chosen.iter().filter(|&&other| self.of(other) == zone).count();
        let own = held(self.of(endpoint));
        if own == 0 {
            return true;
        }
        let first_of_zone = |&(at, &other): &(usize, &u16)| {
            chosen.iter().take(at).all(|&before| self.of(before) != self.of(other))
        };
        let mut occupied =
            chosen.iter().enumerate().filter(first_of_zone).map(|(_, &other)| held(self.of(other)));
        occupied.clone().count() == zones && occupied.all(|least| own <= least)
    }
}
