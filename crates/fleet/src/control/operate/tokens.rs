//! Tokens of enrolment.

use super::OperatorError;
use crate::api_key::{NewSecret, random_id};
use crate::control::Fleet;
use crate::record::{TokenRecord, encode};
use crate::store::{Table, Write};
use crate::time;
use serde::Serialize;
use std::sync::PoisonError;

/// The longest name of a token, in characters.
const LONGEST_NAME: usize = 64;
/// Tokens are kept in memory, and listed in one answer.
const MOST_TOKENS: usize = 2_000;

/// A token as operators see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct TokenView {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) policy_id: String,
    pub(crate) created_at: String,
    /// The text for agents: only when it is made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) token: Option<String>,
}

impl Fleet {
    /// Makes a token with which agents enrol under this policy.
    ///
    /// # Errors
    /// [`OperatorError`].
    pub(crate) async fn create_token(&self, policy_id: &str, name: &str) -> Result<TokenView, OperatorError> {
        if self.find_policy(policy_id).await?.is_none() {
            return Err(OperatorError::Unknown(format!(
                "policy `{policy_id}`; put it first, with `tidegate fleet policy put FILE`"
            )));
        }
        if name.chars().count() > LONGEST_NAME {
            return Err(OperatorError::Invalid(format!(
                "a name of a token has at most {LONGEST_NAME} characters"
            )));
        }
        if self.tokens.read().unwrap_or_else(PoisonError::into_inner).len() >= MOST_TOKENS {
            return Err(OperatorError::Invalid(format!(
                "there are {MOST_TOKENS} tokens already; revoke some"
            )));
        }
        let (id, secret) = (random_id(), NewSecret::random());
        let record = TokenRecord {
            policy_id: policy_id.to_owned(),
            name: name.to_owned(),
            key: secret.hash(),
            created_ms: time::now_ms(),
        };
        self.store.commit(vec![Write::put(Table::Tokens, id.as_str(), encode(&record))].into()).await?;
        let view = TokenView { token: Some(secret.token(&id)), ..view(&id, &record) };
        self.tokens.write().unwrap_or_else(PoisonError::into_inner).insert(id, record);
        Ok(view)
    }

    /// All tokens, in the order of their ids.
    pub(crate) fn list_tokens(&self) -> Vec<TokenView> {
        let tokens = self.tokens.read().unwrap_or_else(PoisonError::into_inner);
        let mut views: Vec<_> = tokens.iter().map(|(id, record)| view(id, record)).collect();
        views.sort_by(|one, other| one.id.cmp(&other.id));
        views
    }

    /// Revokes a token: nobody enrols with it any more.
    ///
    /// # Errors
    /// [`OperatorError`].
    pub(crate) async fn revoke_token(&self, id: &str) -> Result<(), OperatorError> {
        let is_known = || self.tokens.read().unwrap_or_else(PoisonError::into_inner).contains_key(id);
        if !is_known() {
            self.find(Table::Tokens, id).await?;
        }
        if !is_known() {
            return Err(OperatorError::Unknown(format!("token `{id}`")));
        }
        self.store.commit(vec![Write::remove(Table::Tokens, id)].into()).await?;
        self.tokens.write().unwrap_or_else(PoisonError::into_inner).remove(id);
        Ok(())
    }
}

fn view(id: &str, record: &TokenRecord) -> TokenView {
    TokenView {
        id: id.to_owned(),
        name: record.name.clone(),
        policy_id: record.policy_id.clone(),
        created_at: time::text(record.created_ms),
        token: None,
    }
}
