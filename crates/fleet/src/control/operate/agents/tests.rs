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
        let of_host = AgentFilter { host: Some(agents[10].to_string()), ..AgentFilter::default() };
        let of_nobody = AgentFilter { policy: Some("q"), ..AgentFilter::default() };
        let everybody = AgentFilter::default();
        let cases =
            [(everybody, &agents[..]), (of_policy, &agents[..]), (of_host, &agents[10..]), (of_nobody, &[])];
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
