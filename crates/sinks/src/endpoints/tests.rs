//! Invariant: an endpoint that failed gets no request until it is to be tried, then one, then as many as allowed.

use super::*;

const SECOND: Duration = Duration::from_secs(1);

struct Nobody(Uri);

impl Peer for Nobody {
    fn uri(&self) -> &Uri {
        &self.0
    }

    fn hang_up(&self) {}

    async fn close(&self) {}
}

fn endpoints(count: usize) -> Endpoints<Nobody> {
    let peers = (0..count).map(|_| Nobody(Uri::from_static("http://127.0.0.1:1")));
    Endpoints::new(peers, AdaptationRule::Requests(8), (SECOND, 30 * SECOND))
}

fn place(endpoints: &mut Endpoints<Nobody>, now: Instant) -> Option<Reservation> {
    endpoints.reserve(100, now).map(|(place, _)| place)
}

#[tokio::test]
async fn one_that_failed_is_tried_by_one_request() {
    let (mut endpoints, now) = (endpoints(1), Instant::now());
    let (first, second) = (place(&mut endpoints, now).unwrap(), place(&mut endpoints, now).unwrap());
    assert!(endpoints.give_back(first, AttemptResult::Failed(None), now), "it worked before");
    assert!(place(&mut endpoints, now).is_none());
    // That one was under way when the other failed: it is the same failure, and no proof of life.
    assert!(!endpoints.give_back(second, AttemptResult::Failed(None), now));
    let until = endpoints.all_left_until().unwrap();
    assert!(until > now && until <= now + SECOND);
    let trial = place(&mut endpoints, until).unwrap();
    assert!(place(&mut endpoints, until).is_none(), "one is enough to see");
    assert!(!endpoints.give_back(trial, AttemptResult::Failed(None), until));
    let later = endpoints.all_left_until().unwrap();
    assert!(later >= until + SECOND, "the wait doubles");
    let trial = place(&mut endpoints, later).unwrap();
    endpoints.give_back(trial, AttemptResult::Alive, later);
    assert_eq!(endpoints.all_left_until(), None);
    assert!(place(&mut endpoints, later).is_some());
}

/// One that fails only after a timeout does not get every other request, where they are sent one after the other.
#[tokio::test]
async fn one_that_fails_slowly_is_left_alone_for_longer() {
    let (mut endpoints, now) = (endpoints(2).in_turn(), Instant::now());
    let slow = place(&mut endpoints, now).unwrap();
    let gone = slow.endpoint;
    let late = now + 30 * SECOND;
    endpoints.give_back(slow, AttemptResult::Failed(None), late);
    let mut next = |at| {
        let taken = place(&mut endpoints, at).unwrap();
        let endpoint = taken.endpoint;
        endpoints.give_back(taken, AttemptResult::Alive, at);
        endpoint
    };
    assert_eq!([(); 2].map(|()| next(late + 299 * SECOND)), [1 - gone; 2]);
    assert_eq!(next(late + 301 * SECOND), gone);
    // Where no other works there is nothing to spare.
    let later = late + 400 * SECOND;
    for failed in [later + 30 * SECOND, later + 60 * SECOND] {
        let taken = place(&mut endpoints, failed - 30 * SECOND).unwrap();
        endpoints.give_back(taken, AttemptResult::Failed(None), failed);
    }
    assert!(endpoints.all_left_until().unwrap() <= later + 61 * SECOND);
}

#[tokio::test]
async fn a_retry_after_outlives_the_success_of_earlier_requests() {
    let (mut endpoints, now) = (endpoints(1), Instant::now());
    let (first, second) = (place(&mut endpoints, now).unwrap(), place(&mut endpoints, now).unwrap());
    let failed = now + SECOND;
    endpoints.give_back(first, AttemptResult::Failed(Some(20 * SECOND)), failed);
    endpoints.give_back(second, AttemptResult::Alive, failed);
    assert!(place(&mut endpoints, failed + 19 * SECOND).is_none());
    assert!(place(&mut endpoints, failed + 23 * SECOND).is_some());
}

#[tokio::test]
async fn the_others_take_the_turns_of_one_that_failed() {
    let (mut endpoints, now) = (endpoints(3), Instant::now());
    let first = place(&mut endpoints, now).unwrap();
    let gone = first.endpoint;
    endpoints.give_back(first, AttemptResult::Failed(None), now);
    let took: Vec<usize> = (0..4).map(|_| place(&mut endpoints, now).unwrap().endpoint).collect();
    assert!(!took.contains(&gone));
    assert_eq!(endpoints.all_left_until(), None, "requests need not wait for it");
    assert!(endpoints.next_trial().is_some());
}

/// The sum of the limits is shown as it adapts, in requests also where bytes are counted.
#[tokio::test]
async fn limits_are_shown_as_they_adapt() {
    let (health, now) = (Health::default(), Instant::now());
    assert_eq!(health.concurrency_limit(), None, "nothing adapts yet");
    let mut endpoints = endpoints(2).showing_limits(&health);
    assert_eq!(health.concurrency_limit(), Some(4.0));
    let first = place(&mut endpoints, now).unwrap();
    endpoints.give_back(first, AttemptResult::Failed(None), now);
    assert_eq!(health.concurrency_limit(), Some(3.0), "half of one of two");
    let peers = [Nobody(Uri::from_static("http://127.0.0.1:1"))];
    let law = AdaptationRule::Bytes { steps: 8, step: 1 << 20 };
    let _bytes = Endpoints::new(peers, law, (SECOND, SECOND)).showing_limits(&health);
    assert_eq!(health.concurrency_limit(), Some(2.0));
}
