//! Promise: a list has every agent that fits, once.

use super::*;
use crate::control::tests::{Trial, run};

/// Page by page a filter finds each agent that fits once, in the order of their ids, however many do not.
#[test]
fn lists_go_on_behind_the_last_agent() {
    run(async {
        let trial = Trial::new().await;
        let mut agents = trial.agents(11).await;
        agents.sort();
        let of_policy = AgentFilter { policy: Some("p"), ..AgentFilter::default() };
        let with_text = |text: &str| AgentFilter { host: Some(text.to_owned()), ..AgentFilter::default() };
        let last = agents[10].to_string();
        let (of_id, of_its_end) = (with_text(&last[..18]), with_text(&last[1..]));
        let of_nobody = AgentFilter { policy: Some("q"), ..AgentFilter::default() };
        let everybody = AgentFilter::default();
        let cases = [
            (everybody, &agents[..]),
            (of_policy, &agents[..]),
            (of_id, &agents[10..]),
            (of_its_end, &[]),
            (of_nobody, &[]),
        ];
        for (filter, expected) in cases {
            let (mut found, mut after) = (Vec::new(), None);
            loop {
                let batch = trial.fleet.list_agents(after, 2, &filter).await.unwrap();
                assert!(batch.agents.len() <= 2, "{filter:?}");
                found.extend(batch.agents.iter().map(|agent| agent.id.parse::<AgentId>().unwrap()));
                if batch.last.is_none() {
                    break;
                }
                after = batch.last;
            }
            assert_eq!(found, expected, "{filter:?}");
        }
    });
}
