//! The resources of series: each is a tenant and the attributes of a resource.

use crate::blob::Blob;
use crate::index::Index;
use crate::settings::Sizes;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The resources, numbered in the order in which they were met.
#[derive(Debug)]
pub(crate) struct Resources {
    entries: Vec<Resource>,
    index: Index,
    seed: u64,
    /// The most that are not of overflow series.
    most: usize,
    overflow_most: usize,
    overflow: usize,
}

/// A resource: its tenant and attributes are in the blob.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Resource {
    start: u32,
    /// Its place in the order of the flush; at the end of one, whether a series has it.
    rank: u32,
    attributes_len: u16,
    tenant_len: u8,
    is_overflow: bool,
}

/// The resource of the items that a measure looks at now.
#[derive(Debug)]
pub(crate) struct CurrentResource {
    /// The message `Resource`.
    pub(crate) attributes: Vec<u8>,
    /// The attributes had no room.
    pub(crate) is_cut: bool,
    /// Its number, when it was looked up.
    pub(crate) number: Option<u32>,
}

impl CurrentResource {
    pub(crate) fn new(len: usize) -> CurrentResource {
        CurrentResource { attributes: Vec::with_capacity(len), is_cut: false, number: None }
    }

    /// Becomes the resource without attributes.
    pub(crate) fn clear(&mut self) {
        self.set(&[], false);
    }

    /// Becomes another one. `attributes` have at most the bytes that it was made for.
    pub(crate) fn set(&mut self, attributes: &[u8], is_cut: bool) {
        self.attributes.clear();
        self.attributes.extend_from_slice(attributes);
        (self.is_cut, self.number) = (is_cut, None);
    }
}

impl Resource {
    fn len(self) -> usize {
        usize::from(self.tenant_len) + usize::from(self.attributes_len)
    }
}

impl Resources {
    pub(crate) fn new(sizes: &Sizes, seed: u64) -> Resources {
        Resources {
            entries: Vec::with_capacity(sizes.all_resources()),
            index: Index::new(sizes.all_resources()),
            seed,
            most: sizes.resources,
            overflow_most: sizes.overflow_resources,
            overflow: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn is_overflow(&self, number: u32) -> bool {
        self.entries[number as usize].is_overflow
    }

    pub(crate) fn rank(&self, number: u32) -> u32 {
        self.entries[number as usize].rank
    }

    pub(crate) fn set_rank(&mut self, number: u32, rank: u32) {
        self.entries[number as usize].rank = rank;
    }

    pub(crate) fn tenant<'a>(&self, number: u32, blob: &'a Blob) -> &'a [u8] {
        let resource = self.entries[number as usize];
        blob.get(resource.start, resource.tenant_len.into())
    }

    /// The attributes, as the message `Resource`.
    pub(crate) fn attributes<'a>(&self, number: u32, blob: &'a Blob) -> &'a [u8] {
        let resource = self.entries[number as usize];
        blob.get(resource.start + u32::from(resource.tenant_len), resource.attributes_len.into())
    }

    /// The number of a resource. It is added where there is none; `None` where there is no room for it.
    pub(crate) fn intern(
        &mut self,
        tenant: &[u8],
        attributes: &[u8],
        is_overflow: bool,
        blob: &mut Blob,
    ) -> Option<u32> {
        let hash = self.hash(tenant, attributes, is_overflow);
        let is_it = |number: u32| {
            let resource = self.entries[number as usize];
            resource.is_overflow == is_overflow
                && usize::from(resource.tenant_len) == tenant.len()
                && usize::from(resource.attributes_len) == attributes.len()
                && self.tenant(number, blob) == tenant
                && self.attributes(number, blob) == attributes
        };
        self.index.find(hash, is_it).or_else(|| self.add(hash, tenant, attributes, is_overflow, blob))
    }

    fn add(
        &mut self,
        hash: u32,
        tenant: &[u8],
        attributes: &[u8],
        is_overflow: bool,
        blob: &mut Blob,
    ) -> Option<u32> {
        let is_full = match is_overflow {
            true => self.overflow == self.overflow_most,
            false => self.entries.len() - self.overflow == self.most,
        };
        if is_full {
            return None;
        }
        let (tenant_len, attributes_len) = (tenant.len().try_into().ok()?, attributes.len().try_into().ok()?);
        let start = blob.push_resource(tenant, attributes, is_overflow)?;
        let number = self.entries.len() as u32;
        self.entries.push(Resource { start, rank: 0, attributes_len, tenant_len, is_overflow });
        self.overflow += usize::from(is_overflow);
        self.index.insert(hash, number);
        Some(number)
    }

    /// Forgets all.
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.index.clear();
        self.overflow = 0;
    }

    /// Forgets those with a rank of zero, and puts the new numbers of the others into `numbers`.
    pub(crate) fn compact(&mut self, blob: &mut Blob, numbers: &mut Vec<u32>) {
        numbers.clear();
        blob.clear_resources();
        self.index.clear();
        let mut kept = 0;
        for number in 0..self.entries.len() {
            let mut resource = self.entries[number];
            numbers.push(kept);
            if resource.rank == 0 {
                continue;
            }
            resource.start = blob.move_resource(resource.start, resource.len(), resource.is_overflow);
            self.entries[kept as usize] = resource;
            let tenant = self.tenant(kept, blob);
            let hash = self.hash(tenant, self.attributes(kept, blob), resource.is_overflow);
            self.index.insert(hash, kept);
            kept += 1;
        }
        self.entries.truncate(kept as usize);
        self.overflow = self.entries.iter().filter(|resource| resource.is_overflow).count();
    }

    fn hash(&self, tenant: &[u8], attributes: &[u8], is_overflow: bool) -> u32 {
        let seed = xxh3_64_with_seed(tenant, self.seed ^ u64::from(is_overflow));
        (xxh3_64_with_seed(attributes, seed) >> 32) as u32
    }
}
