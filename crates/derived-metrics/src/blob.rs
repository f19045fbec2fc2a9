//! The bytes of keys, from the front, and those of resources, from the back.
//!
//! Invariant: what overflow resources do not use of their reserve stays free.

/// The bytes of keys and resources.
#[derive(Debug)]
pub(crate) struct Blob {
    bytes: Box<[u8]>,
    /// The end of the keys.
    front: usize,
    /// The beginning of the resources.
    back: usize,
    /// Bytes that only overflow resources may use.
    reserve: usize,
    whole_reserve: usize,
}

impl Blob {
    /// Room for so many bytes, and for those of overflow resources.
    pub(crate) fn new(len: usize, reserve: usize) -> Blob {
        let whole = len + reserve;
        Blob { bytes: vec![0; whole].into(), front: 0, back: whole, reserve, whole_reserve: reserve }
    }

    /// Forgets all.
    pub(crate) fn clear(&mut self) {
        self.clear_keys();
        self.clear_resources();
    }

    #[inline]
    pub(crate) fn get(&self, start: u32, len: usize) -> &[u8] {
        let start = start as usize;
        self.bytes.get(start..start + len).unwrap_or_default()
    }

    /// Appends a key. Returns where it starts; `None` where there is no room.
    pub(crate) fn push_key(&mut self, key: &[u8]) -> Option<u32> {
        let start = self.front;
        if key.len() > self.free() {
            return None;
        }
        self.bytes.get_mut(start..start + key.len())?.copy_from_slice(key);
        self.front += key.len();
        Some(start as u32)
    }

    /// Appends a resource: a tenant and attributes.
    pub(crate) fn push_resource(
        &mut self,
        tenant: &[u8],
        attributes: &[u8],
        is_overflow: bool,
    ) -> Option<u32> {
        let len = tenant.len() + attributes.len();
        let start = self.make_room(len, is_overflow)?;
        let (of_tenant, rest) = self.bytes.get_mut(start..start + len)?.split_at_mut(tenant.len());
        of_tenant.copy_from_slice(tenant);
        rest.copy_from_slice(attributes);
        Some(start as u32)
    }

    /// Before keys that stay are [moved](Self::move_key), in their order.
    pub(crate) fn clear_keys(&mut self) {
        self.front = 0;
    }

    /// Before resources that stay are [moved](Self::move_resource), in their order.
    pub(crate) fn clear_resources(&mut self) {
        (self.back, self.reserve) = (self.bytes.len(), self.whole_reserve);
    }

    /// Moves a key to the others that stay. Returns where it starts.
    pub(crate) fn move_key(&mut self, start: u32, len: usize) -> u32 {
        let start = start as usize;
        let moved = self.front;
        self.bytes.copy_within(start..start + len, moved);
        self.front += len;
        moved as u32
    }

    /// Moves a resource to the others that stay. Returns where it starts.
    pub(crate) fn move_resource(&mut self, start: u32, len: usize, is_overflow: bool) -> u32 {
        let from = start as usize;
        // There is room: it was there before, with more.
        let Some(moved) = self.make_room(len, is_overflow) else { return start };
        self.bytes.copy_within(from..from + len, moved);
        moved as u32
    }

    fn make_room(&mut self, len: usize, is_overflow: bool) -> Option<usize> {
        if is_overflow {
            self.reserve = self.reserve.checked_sub(len)?;
        } else if len > self.free() {
            return None;
        }
        self.back -= len;
        Some(self.back)
    }

    fn free(&self) -> usize {
        self.back - self.front - self.reserve
    }
}
