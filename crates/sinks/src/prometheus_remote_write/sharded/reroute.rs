//! Series of a request whose receiver left are given to the receivers that have them now.

use super::protocol::ShardedProtocol;
use crate::batch::DropReason;
use crate::spread::{BodyInfo, Distributor};
use bytes::Bytes;
use tidegate_wire::snappy;

impl Distributor<ShardedProtocol> {
    /// Spreads the series of a sealed request; returns the items without a receiver.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(super) async fn spread_block(&mut self, body: Bytes, info: &BodyInfo) -> Result<u64, DropReason> {
        let len = snappy::decoded_len(&body).map_err(|_| DropReason::Damaged)?;
        let mut raw = self.window(len).await?;
        let written = snappy::decode(&body, raw.spare_mut()).map_err(|_| DropReason::Damaged)?;
        raw.advance(written);
        drop(body);
        let placed = Box::pin(self.walk(&raw, info)).await?;
        self.release(raw);
        Ok(placed.unplaced)
    }
}
