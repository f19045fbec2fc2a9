//! Reads lines of JSON, each a `program` of VRL and an `event`, and says of each in a line what became of the event:
//! `{"event": …, "result": …}`, `{"dropped": true}`, `{"failed": "…"}`, or `{"invalid": "…"}` for a program that Vector does not take.

use serde_json::{Value as Json, json};
use std::io::{BufRead as _, stdin};
use vrl::compiler::state::RuntimeState;
use vrl::compiler::{Context, ExpressionError, TargetValue, TimeZone, compile};
use vrl::value::{Secrets, Value};

fn outcome(program: &str, event: &Json) -> Json {
    let compiled = match compile(program, &vrl::stdlib::all()) {
        Ok(compiled) => compiled.program,
        Err(errors) => return json!({"invalid": format!("{errors:?}")}),
    };
    let mut target = TargetValue {
        value: Value::from(event.clone()),
        metadata: Value::Object(Default::default()),
        secrets: Secrets::default(),
    };
    let (mut state, zone) = (RuntimeState::default(), TimeZone::default());
    match compiled.resolve(&mut Context::new(&mut target, &mut state, &zone)) {
        Ok(result) => json!({"event": target.value, "result": result}),
        Err(ExpressionError::Abort { .. }) => json!({"dropped": true}),
        Err(error) => json!({"failed": error.to_string()}),
    }
}

fn main() {
    for line in stdin().lock().lines() {
        let case: Json = serde_json::from_str(&line.unwrap()).unwrap();
        println!("{}", outcome(case["program"].as_str().unwrap(), &case["event"]));
    }
}
