use super::*;
use serde_json::{Value, json};
use tidegate_console::{LONGEST_STEPS, LoadedSteps, Taken};

/// The answer to a trial of JSON.
fn tried(steps: &str, items: &str) -> Value {
    let form = json!({"steps": steps, "items": items}).to_string();
    answered(&request("application/json", &form), &form, "").1
}

fn request(content_type: &str, form: &str) -> TrialRequest {
    TrialRequest {
        content_type: content_type.to_owned(),
        form_bytes: form.len(),
        load: None,
        taken: None,
        pipelines: vec![],
        most: 300 << 10,
    }
}

fn answered(request: &TrialRequest, form: &str, items: &str) -> (String, Value) {
    let input = format!("{}\n{form}{items}", serde_json::to_string(request).unwrap());
    let answer = answer(input.as_bytes()).unwrap();
    let (status, content) = std::str::from_utf8(answer.bytes()).unwrap().split_once('\n').unwrap();
    assert!(answer.bytes().len() <= request.most);
    let json = serde_json::from_str(content).unwrap_or_else(|_| Value::String(content.to_owned()));
    (status.to_owned(), json)
}

#[test]
fn an_edit_is_tried() {
    let steps = "- name: quiet\n  drop: log.severity_number < 9\n- edit:\n    - set(log.attributes[\"env\"], \"prod\")\n    - set(log.body, ParseJSON(log.body))";
    let items = "{\"body\": \"{\\\"a\\\":1}\", \"severity_number\": 9, \"attributes\": {\"n\": 1}}\n{\"body\": \"b\", \"severity_number\": 1}\n{\"body\": \"c\", \"severity_number\": 9}";
    let report = tried(steps, items);
    let items = report["items"].as_array().unwrap();
    assert_eq!(items.len(), 3, "{report}");
    assert_eq!(
        items[0]["changes"][0],
        json!({"statement": 1, "path": "attributes.env", "was": null, "now": "prod"})
    );
    assert_eq!(items[0]["after"]["body"], json!({"a": 1.0}), "{report}");
    assert_eq!(
        (&items[1]["after"], &items[1]["dropped_by"], &items[1]["line"]),
        (&Value::Null, &json!(0), &json!(2))
    );
    let statements = report["statements"].as_array().unwrap();
    let counts: Vec<_> =
        statements.iter().map(|it| json!([it["step"], it["changed"], it["dropped"], it["failed"]])).collect();
    assert_eq!(counts, [json!(["quiet", 0, 1, 0]), json!(["2", 2, 0, 0]), json!(["2", 1, 0, 1])]);
}

#[test]
fn relabeling_is_tried() {
    let report = tried(
        "- {regex: replica, action: labeldrop}\n- {source_labels: [job], regex: b, action: drop}",
        "up{job=\"a\",replica=\"0\"} 1\nup{job=\"b\"}",
    );
    assert_eq!(report["items"][0]["after"], "up{job=\"a\"}");
    assert_eq!((&report["items"][1]["after"], &report["items"][1]["dropped_by"]), (&Value::Null, &json!(1)));
    assert_eq!(report["statements"][1]["what"], "relabel rule 2: drop");
}

/// Both texts are told of by line, also where only one of them can be used.
#[test]
fn problems_have_their_lines() {
    let report = tried("- edit:\n    - sett(log.body, 1)", "{\"body\": 1}\n{\"bdy\": 1}");
    let steps = &report["steps_problems"][0];
    assert_eq!(
        (&steps["line"], &steps["column"], &steps["excerpt"]),
        (&json!(2), &json!(7), &json!("    - sett(log.body, 1)"))
    );
    assert!(steps["help"].as_str().unwrap().contains("`set`"), "{report}");
    assert_eq!(
        (&report["items_problems"][0]["line"], &report["items_problems"][0]["excerpt"]),
        (&json!(2), &json!("{\"bdy\": 1}"))
    );
    let many = tried("- drop: log.body == \"a\"", &"{\n".repeat(100));
    assert!(many["items_problems"].as_array().unwrap().len() <= MOST_PROBLEMS + 1);
    let none = tried("", "");
    assert_eq!(none["notes"], json!(["There are no steps yet."]));
    assert_eq!(tried("- drop: log.body == \"a\"", " \n")["notes"], json!(["There are no items yet."]));
    for (steps, items, words) in [
        ("- edit: set(log.body, 1)", "up", "only `relabel` changes those"),
        ("- {regex: a, action: labeldrop}", "{\"body\": 1}", "paste series"),
    ] {
        assert!(tried(steps, items)["warnings"].to_string().contains(words), "{steps}");
    }
}

#[test]
fn what_was_asked_for_takes_the_place_of_what_was_sent() {
    let form = "--x\r\nContent-Disposition: form-data; name=\"steps\"\r\n\r\nstale\r\n--x--";
    let mut request = request("multipart/form-data; boundary=x", form);
    request.load =
        Some(LoadedSteps { name: "clean".into(), steps: Some("- drop: log.body == \"new\"".into()) });
    request.taken = Some(Taken { words: "Took 1 item.".into() });
    let (status, page) = answered(&request, form, "{\"signal\":\"logs\",\"body\":\"new\"}\n");
    let page = page.as_str().unwrap();
    assert_eq!(status, "200");
    assert!(page.contains("- drop: log.body == \"new\"</textarea>") && !page.contains("stale"), "{page}");
    assert!(page.contains("Dropped by step 1") && page.contains("Took 1 item."), "{page}");
    request.load = Some(LoadedSteps { name: "gone".into(), steps: None });
    let (_, page) = answered(&request, form, "");
    assert!(page.as_str().unwrap().contains("There is no pipeline gone"));
}

#[test]
fn a_form_that_cannot_be_used_is_answered() {
    let (status, json) = answered(&request("application/json", "{"), "{", "");
    assert!(status == "400" && json["error"].as_str().unwrap().contains("no trial"), "{json}");
    let form = json!({"steps": "x".repeat(LONGEST_STEPS + 1)}).to_string();
    assert_eq!(answered(&request("application/json", &form), &form, "").0, "400");
    let form = format!(
        "--x\r\nContent-Disposition: form-data; name=\"steps\"\r\n\r\n{}\r\n--x--",
        "x".repeat(LONGEST_STEPS + 1)
    );
    let (status, page) = answered(&request("multipart/form-data; boundary=x", &form), &form, "");
    assert!(status == "200" && page.as_str().unwrap().contains("the steps are longer than 32 KiB"));
    for input in ["", "{}\n", "\n", "{\"a\":1}\nx"] {
        assert!(answer(input.as_bytes()).is_none(), "{input}");
    }
}
