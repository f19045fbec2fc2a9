//! Tokens with which agents connect.

use super::{Opamp, OrderError};
use crate::record::TokenRecord;
use std::sync::PoisonError;
use tidegate_fleet::{KeyHash, NewSecret, Table, Write, encode, random_id};

/// The most tokens.
const MOST: usize = 1000;
const LONGEST_NAME: usize = 256;

impl Opamp {
    /// Makes a token: its id, and the text for agents, which is kept by nobody.
    pub(crate) async fn create_token(&self, name: &str) -> Result<(String, String), OrderError> {
        let _changing = self.changing.lock().await;
        if name.len() > LONGEST_NAME {
            return Err(OrderError::Invalid(format!("a token's name has at most {LONGEST_NAME} bytes")));
        }
        if self.list_tokens().len() >= MOST {
            return Err(OrderError::Invalid(format!(
                "there are {MOST} tokens, which is as many as there may be; revoke some"
            )));
        }
        let (id, secret) = (random_id(), NewSecret::random());
        let record = TokenRecord { name: name.to_owned(), key: secret.hash() };
        self.store.commit(vec![Write::put(Table::OpampTokens, id.as_str(), encode(&record))].into()).await?;
        self.tokens.write().unwrap_or_else(PoisonError::into_inner).insert(id.clone(), record);
        let text = secret.token(&id);
        Ok((id, text))
    }

    /// Revokes a token. Connections that were opened with it stay.
    pub(crate) async fn revoke_token(&self, id: &str) -> Result<(), OrderError> {
        let _changing = self.changing.lock().await;
        if !self.tokens.read().unwrap_or_else(PoisonError::into_inner).contains_key(id) {
            return Err(OrderError::Unknown(format!("token `{id:.80}`")));
        }
        self.store.commit(vec![Write::remove(Table::OpampTokens, id)].into()).await?;
        self.tokens.write().unwrap_or_else(PoisonError::into_inner).remove(id);
        Ok(())
    }

    /// Ids and names.
    pub(crate) fn list_tokens(&self) -> Vec<(String, String)> {
        let tokens = self.tokens.read().unwrap_or_else(PoisonError::into_inner);
        tokens.iter().map(|(id, token)| (id.clone(), token.name.clone())).collect()
    }

    /// Whether this is the secret of this token.
    pub(crate) fn is_token(&self, id: &str, secret: &[u8]) -> bool {
        let hash = KeyHash::of(secret);
        let tokens = self.tokens.read().unwrap_or_else(PoisonError::into_inner);
        tokens.get(id).is_some_and(|token| token.key.is(&hash))
    }
}
