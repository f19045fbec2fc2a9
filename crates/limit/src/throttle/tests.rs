//! Promises: at most so many keys hold a token, each one, for its time; as a plain list of them would have it.

use super::*;
use proptest::prelude::*;

const LIVES: Duration = Duration::from_nanos(1000);

#[test]
fn a_key_holds_one_token_until_it_gives_it_back() {
    let throttle = Throttle::new(2, LIVES);
    let one = throttle.acquire(Moment(0), 1).unwrap();
    assert_eq!(throttle.acquire(Moment(100), 1).unwrap_err(), NoToken::Held(Duration::from_nanos(900)));
    let two = throttle.acquire(Moment(100), 2).unwrap();
    assert_eq!(throttle.acquire(Moment(200), 3).unwrap_err(), NoToken::Full(Duration::from_nanos(800)));
    drop(two);
    let three = throttle.acquire(Moment(200), 3).unwrap();
    drop((one, three));
    assert_eq!(throttle.held(), 0);
}

#[test]
fn a_token_returned_late_does_not_affect_the_next_holder() {
    let throttle = Throttle::new(1, LIVES);
    let late = throttle.acquire(Moment(0), 1).unwrap();
    let other = throttle.acquire(Moment(1000), 2).unwrap();
    drop(late);
    assert_eq!(throttle.held(), 1);
    assert!(matches!(throttle.acquire(Moment(1001), 3), Err(NoToken::Full(_))));
    drop(other);
    assert!(throttle.acquire(Moment(1002), 3).is_ok());
}

proptest! {
    #[test]
    fn it_is_a_plain_list_of_tokens(
        most in 1..6_u32,
        steps in proptest::collection::vec((0..400_u64, any::<bool>(), 0..12_u64), 1..300),
    ) {
        let throttle = Throttle::new(most, LIVES);
        let mut now = 0_u64;
        // Key and end of the tokens in the order in which they were given, and the tokens themselves.
        let mut model: Vec<(u64, u64)> = Vec::new();
        let mut tokens: Vec<(u64, u64, Token<u64>)> = Vec::new();
        for (pause, acquires, key) in steps {
            now += pause;
            if acquires {
                let own = model.iter().position(|(held, _)| *held == key);
                let expected = match own {
                    Some(at) if model[at].1 > now => {
                        Err(NoToken::Held(Duration::from_nanos(model[at].1 - now)))
                    }
                    Some(at) => {
                        model.remove(at);
                        Ok(())
                    }
                    None if model.len() == most as usize && model[0].1 > now => {
                        Err(NoToken::Full(Duration::from_nanos(model[0].1 - now)))
                    }
                    None => {
                        if model.len() == most as usize {
                            model.remove(0);
                        }
                        Ok(())
                    }
                };
                let given = throttle.acquire(Moment(now), key);
                prop_assert_eq!(given.as_ref().map(|_| ()).map_err(|refused| *refused), expected);
                if let Ok(token) = given {
                    model.push((key, now + 1000));
                    tokens.push((key, now + 1000, token));
                }
            } else if !tokens.is_empty() {
                let (key, ends, token) = tokens.swap_remove(key as usize % tokens.len());
                drop(token);
                model.retain(|held| *held != (key, ends));
            }
            prop_assert_eq!(throttle.held(), model.len());
        }
        tokens.clear();
        prop_assert_eq!(throttle.held(), 0);
    }
}

/// Whatever came and went, every key is found again: with keys that all meet in a small table.
#[test]
fn the_index_closes_its_gaps() {
    let throttle = Throttle::new(64, Duration::from_secs(1));
    for round in 0..200_u64 {
        let tokens: Vec<_> =
            (0..64).map(|key| throttle.acquire(Moment(round), key * 64 + round).unwrap()).collect();
        for key in 0..64 {
            assert!(matches!(throttle.acquire(Moment(round), key * 64 + round), Err(NoToken::Held(_))));
        }
        let kept: Vec<_> = tokens.into_iter().enumerate().filter(|(at, _)| at % 3 == 0).collect();
        for (at, _) in &kept {
            assert!(throttle.acquire(Moment(round), *at as u64 * 64 + round).is_err());
        }
        assert_eq!(throttle.held(), kept.len());
    }
}
