//! Promise: a sink that is stopped waits for answers that come soon.

use crate::member::{Member, Reply};
use crate::rig::{PART, Rig, SECOND, settings, until};

/// An answer that comes soon behind the stop counts.
#[tokio::test]
async fn a_stop_waits_for_answers_that_come_soon() {
    let member = Member::new();
    let mut rig = Rig::new(PART);
    let settings = settings(&rig, &[&member], 1);
    member.always(Reply::Stall);
    rig.put(None, 0..10, 1).await;
    let (sink, stopper) = rig.sink(&settings);
    let script = async {
        until("it is stalled", || member.stalled() > 0).await;
        stopper.stop();
        member.release();
    };
    tokio::time::timeout(30 * SECOND, async { tokio::join!(sink.run(), script) }).await.unwrap();
    assert_eq!((rig.page().queued, rig.page().delivered, rig.held()), (0, 10, 0));
}
