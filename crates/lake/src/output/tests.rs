use super::*;
use crate::table::timestamp;
use arrow::array::{
    FixedSizeBinaryArray, Float64Array, Int32Array, StringViewArray, TimestampMicrosecondArray,
};
use arrow::datatypes::{DataType, Field, Schema};
use std::sync::Arc;

fn written(format: Format) -> String {
    let schema = Schema::new(vec![
        Field::new("time", timestamp(), false),
        Field::new("attributes", DataType::Utf8View, false),
        Field::new("job", DataType::Utf8View, true),
        Field::new("id", DataType::FixedSizeBinary(2), true),
        Field::new("value", DataType::Float64, true),
        Field::new("time_ns", DataType::Int32, false),
    ]);
    let times = TimestampMicrosecondArray::from(vec![1_700_000_000_000_001, 0]).with_data_type(timestamp());
    let batch = RecordBatch::try_new(
        Arc::new(schema),
        vec![
            Arc::new(times),
            Arc::new(StringViewArray::from(vec![r#"{"a":"é"}"#, "{}"])),
            Arc::new(StringViewArray::from(vec![Some("a,\"b\"\n"), None])),
            Arc::new(
                FixedSizeBinaryArray::try_from_sparse_iter_with_size([Some([0xab, 1]), None].into_iter(), 2)
                    .unwrap(),
            ),
            Arc::new(Float64Array::from(vec![Some(f64::NAN), Some(1.5)])),
            Arc::new(Int32Array::from(vec![7, 0])),
        ],
    );
    let columns = ["time", "attributes", "job", "id", "value"].map(str::to_owned).to_vec();
    let mut output = Output::new(format, Vec::new(), columns);
    output.write(&batch.unwrap()).unwrap();
    String::from_utf8(output.finish().unwrap()).unwrap()
}

#[test]
fn csv_is_quoted_as_rfc_4180_says() {
    let expected = "time,attributes,job,id,value\r\n\
        2023-11-14T22:13:20.000001007Z,\"{\"\"a\"\":\"\"é\"\"}\",\"a,\"\"b\"\"\n\",ab01,NaN\r\n\
        1970-01-01T00:00:00.000000000Z,{},,,1.5\r\n";
    assert_eq!(written(Format::Csv), expected);
}

#[test]
fn ndjson_is_json_line_by_line() {
    let expected = r#"{"time":"2023-11-14T22:13:20.000001007Z","attributes":{"a":"é"},"job":"a,\"b\"\n","id":"ab01","value":"NaN"}
{"time":"1970-01-01T00:00:00.000000000Z","attributes":{},"job":null,"id":null,"value":1.5}
"#;
    assert_eq!(written(Format::Ndjson), expected);
}

#[test]
fn tables_are_aligned_and_control_characters_escaped() {
    let expected = concat!(
        "time                            attributes  job      id    value\n",
        "2023-11-14T22:13:20.000001007Z  {\"a\":\"é\"}   a,\"b\"\\n  ab01  NaN\n",
        "1970-01-01T00:00:00.000000000Z  {}                         1.5\n",
    );
    assert_eq!(written(Format::Table), expected);
}

/// An integer point has its value in `value`, to the last digit; who asks for `value_int` too sees where it is.
#[test]
fn integers_are_shown_as_values() {
    let schema = Schema::new(vec![
        Field::new("value", DataType::Float64, true),
        Field::new("value_int", DataType::Int64, true),
    ]);
    let values = Float64Array::from(vec![Some(1.5), None, None]);
    let integers = arrow::array::Int64Array::from(vec![None, Some(i64::MAX), None]);
    let batch = RecordBatch::try_new(Arc::new(schema), vec![Arc::new(values), Arc::new(integers)]).unwrap();
    let written = |columns: &[&str]| {
        let columns = columns.iter().map(|&column| column.to_owned()).collect();
        let mut output = Output::new(Format::Csv, Vec::new(), columns);
        output.write(&batch).unwrap();
        String::from_utf8(output.finish().unwrap()).unwrap()
    };
    assert_eq!(written(&["value"]), "value\r\n1.5\r\n9223372036854775807\r\n\r\n");
    assert_eq!(written(&["value", "value_int"]), "value,value_int\r\n1.5,\r\n,9223372036854775807\r\n,\r\n");
}

fn of_texts(format: Format, texts: Vec<&str>, is_terminal: bool) -> String {
    let schema = Schema::new(vec![
        Field::new("job", DataType::Utf8View, false),
        Field::new("value", DataType::Float64, false),
    ]);
    let values = Float64Array::from(vec![-5.0; texts.len()]);
    let batch = RecordBatch::try_new(
        Arc::new(schema),
        vec![Arc::new(StringViewArray::from(texts)), Arc::new(values)],
    );
    let columns = ["job", "value"].map(str::to_owned).to_vec();
    let mut output = Output::new(format, Vec::new(), columns).on_terminal(is_terminal);
    output.write(&batch.unwrap()).unwrap();
    String::from_utf8(output.finish().unwrap()).unwrap()
}

/// Text that a spreadsheet would compute is marked as text, also in a file; numbers stay numbers.
#[test]
fn csv_has_no_formulas() {
    let texts = vec!["=1+1", "+1", "-1", "@a", "\tb", "\rc", "a=b", "", "'"];
    let expected = "job,value\r\n'=1+1,-5.0\r\n'+1,-5.0\r\n'-1,-5.0\r\n'@a,-5.0\r\n'\tb,-5.0\r\n\"'\rc\",-5.0\r\na=b,-5.0\r\n,-5.0\r\n',-5.0\r\n";
    assert_eq!(of_texts(Format::Csv, texts, false), expected);
    let infinite = |value| csv::cell(CellValue::of("value", &Float64Array::from(vec![value]), None, 0));
    assert_eq!([infinite(f64::INFINITY), infinite(f64::NEG_INFINITY)], ["Inf", "-Inf"]);
}

/// A terminal is shown nothing that it obeys, in no format; a pipe gets the very bytes.
#[test]
fn a_terminal_gets_escaped_output_and_a_pipe_exact_bytes() {
    let nasty = "a\u{1b}[2J\u{9b}\u{202e}\u{2066}\u{7f}\n";
    for format in [Format::Table, Format::Csv, Format::Ndjson] {
        let shown = of_texts(format, vec![nasty], true);
        let is_wrong = |c| !"\r\n".contains(c) && tidegate_plain::is_control(c);
        assert!(!shown.contains(is_wrong), "{format:?}: {shown:?}");
    }
    let rows: serde_json::Value = serde_json::from_str(&of_texts(Format::Ndjson, vec![nasty], true)).unwrap();
    assert_eq!(rows["job"], nasty, "JSON says the same on a terminal");
    assert!(of_texts(Format::Csv, vec![nasty], false).contains(nasty));
    assert!(of_texts(Format::Ndjson, vec![nasty], false).contains('\u{202e}'));
}
