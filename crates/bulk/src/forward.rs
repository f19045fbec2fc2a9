//! Items of `_bulk` bodies that are sent as they stand, and answered as the server answers.

use crate::driver::Driver;
use crate::engine::{Bulk, Ticket};
use crate::new_item::{ForwardedItem, NewItem};
use crate::outcome::{BulkSubmitError, ItemResponse};
use crate::settings::Settings;
use crate::target::Refresh;
use tidegate_arena::Arena;
use tidegate_meters::Registry;
use tidegate_wire::bulk::Item;

/// Forwards items of `_bulk` bodies. A handle; clones are the same engine.
///
/// An item that the server rejects is not sent again: its client gets that answer. A request that the server rejects as
/// a whole is.
#[derive(Clone, Debug)]
pub struct Forward(Bulk);

impl Forward {
    /// An engine, and the driver to run for it.
    pub fn new(settings: Settings, arena: Arena) -> (Forward, Driver) {
        let (bulk, driver) = Bulk::new(Settings { forwards: true, ..settings }, arena);
        (Forward(bulk), driver)
    }

    /// Forwards an item. Its action gets the fields `more`, each as `"name":value`; `index` is the index as a JSON string,
    /// whether the action has it or `more`.
    ///
    /// # Errors
    /// When the engine does not take it; nothing was sent then, and nothing will be.
    pub fn forward(
        &self,
        item: &Item<'_>,
        more: &[&[u8]],
        index: &[u8],
        refresh: Refresh,
    ) -> Result<Ticket<'_, ItemResponse>, BulkSubmitError> {
        self.0.submit(&NewItem::Forwarded(ForwardedItem { item, extra_fields: more, index, refresh }))
    }

    /// The longest item that it takes, in bytes as written.
    pub fn longest_item(&self) -> usize {
        self.0.longest_item()
    }

    /// The number of items that wait, are in flight, or have an answer that was not taken yet.
    pub fn depth(&self) -> u32 {
        self.0.depth()
    }

    /// Publishes the engine's meters, which are named `bulk_…`.
    pub fn publish(&self, registry: &Registry) {
        self.0.publish(registry);
    }
}
