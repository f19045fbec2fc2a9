//! Arithmetic, as `pkg/ottl/math.go` has it: integers wrap, and mix with doubles.

use crate::ottl::program::Operator;
use crate::value::{Failure, Value};

const OPERANDS: Failure =
    Failure::Invalid("the operands of arithmetic are numbers, times or durations that fit each other");

/// `left operator right`.
pub(super) fn calculate(operator: Operator, left: Value, right: Value) -> Result<Value, Failure> {
    match (left, right) {
        (Value::Int(left), Value::Int(right)) => int(operator, left, right).map(Value::Int),
        (Value::Int(left), Value::Double(right)) => double(operator, left as f64, right),
        (Value::Double(left), Value::Int(right)) => double(operator, left, right as f64),
        (Value::Double(left), Value::Double(right)) => double(operator, left, right),
        (Value::Time(time), Value::Duration(duration)) => match operator {
            Operator::Add => Ok(Value::Time(time.wrapping_add(duration))),
            Operator::Subtract => Ok(Value::Time(time.wrapping_sub(duration))),
            _ => Err(OPERANDS),
        },
        (Value::Time(left), Value::Time(right)) if operator == Operator::Subtract => {
            Ok(Value::Duration(left.saturating_sub(right)))
        }
        (Value::Duration(duration), Value::Time(time)) if operator == Operator::Add => {
            Ok(Value::Time(time.wrapping_add(duration)))
        }
        (Value::Duration(left), Value::Duration(right)) => match operator {
            Operator::Add => Ok(Value::Duration(left.wrapping_add(right))),
            Operator::Subtract => Ok(Value::Duration(left.wrapping_sub(right))),
            _ => Err(OPERANDS),
        },
        _ => Err(OPERANDS),
    }
}

/// `-value`.
pub(super) fn negative(value: Value) -> Result<Value, Failure> {
    match value {
        Value::Int(number) => Ok(Value::Int(number.wrapping_neg())),
        Value::Double(number) => Ok(Value::Double(-number)),
        _ => Err(Failure::Invalid("only a number has a negative")),
    }
}

fn int(operator: Operator, left: i64, right: i64) -> Result<i64, Failure> {
    match operator {
        Operator::Add => Ok(left.wrapping_add(right)),
        Operator::Subtract => Ok(left.wrapping_sub(right)),
        Operator::Multiply => Ok(left.wrapping_mul(right)),
        Operator::Divide if right == 0 => Err(DIVISION),
        Operator::Divide => Ok(left.wrapping_div(right)),
    }
}

fn double(operator: Operator, left: f64, right: f64) -> Result<Value, Failure> {
    match operator {
        Operator::Add => Ok(Value::Double(left + right)),
        Operator::Subtract => Ok(Value::Double(left - right)),
        Operator::Multiply => Ok(Value::Double(left * right)),
        Operator::Divide if right == 0.0 => Err(DIVISION),
        Operator::Divide => Ok(Value::Double(left / right)),
    }
}

const DIVISION: Failure = Failure::Invalid("division by zero");
