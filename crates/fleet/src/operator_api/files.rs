//! The operators' routes about files.

use super::{Failed, OperatorApi, OperatorRequest, limit, parsed, written};
use crate::files::{Client, FileError, FileKind, FileName, FileOrder, FileRecord, OpenedFile};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tidegate_http1::{Content, Reply};

/// The longest name and type of a file that is put, in bytes.
const LONGEST_TEXT: usize = 512;
/// The longest list of files, in bytes.
const LONGEST_LIST: usize = 384 << 10;
const HEADERS: &[(&str, &str)] = &[("Cache-Control", "no-store"), ("X-Content-Type-Options", "nosniff")];

/// A file that an operator begins to put.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PutRequest {
    name: String,
    size: u64,
    /// Of its bytes.
    sha256: String,
    #[serde(default)]
    mime_type: Option<String>,
    /// Of an artifact: that of what its bytes decode to, where policies list it by that.
    #[serde(default)]
    decoded_sha256: Option<String>,
}

#[derive(Debug, Serialize)]
struct PutBegun<'a> {
    upload_id: &'a str,
    chunk_size: usize,
}

impl OperatorApi {
    /// The content of an upload, if the request is for that.
    pub(super) async fn download(&self, request: &OperatorRequest) -> Option<Result<Reply, Failed>> {
        let id = request.path.strip_prefix("uploads/").filter(|_| request.method == "GET")?;
        let opened = match FileName::of_upload(id) {
            Some(file) => self.files.download(&file, None, Client::Operator).await,
            None => Err(FileError::Unknown),
        };
        let reply = |content| {
            Reply::new(200).content_type("application/octet-stream").headers(HEADERS).content(content)
        };
        Some(match opened {
            Ok(OpenedFile::Whole(content) | OpenedFile::Part(content)) => Ok(reply(Content::Stream(content))),
            // Only a part can be that.
            Ok(OpenedFile::Unsatisfiable(_)) => Ok(reply(Content::Empty)),
            Err(error) => Err(error.into()),
        })
    }

    /// The answer as text to a request about files.
    pub(super) async fn file_text(
        &self,
        request: &OperatorRequest,
        parts: &[&str],
        body: &[u8],
    ) -> Result<String, Failed> {
        let files = &self.files;
        match (request.method.as_str(), parts) {
            ("GET", ["uploads"]) => self.list_files("uploads", FileKind::Upload, &request.query).await,
            ("GET", ["artifacts"]) => self.list_files("artifacts", FileKind::Artifact, &request.query).await,
            ("GET", ["files"]) => self.list_files("files", FileKind::ForAgents, &request.query).await,
            ("DELETE", ["uploads", id]) => self.remove(FileName::of_upload(id)).await,
            ("DELETE", ["artifacts", id, sha256]) => self.remove(FileName::of_artifact(id, sha256)).await,
            ("DELETE", ["files", id]) => self.remove(FileName::of_file(id)).await,

            ("PUT", ["artifacts", id]) => {
                let order: PutRequest = parsed(body)?;
                let hash = order.decoded_sha256.as_ref().unwrap_or(&order.sha256);
                let file = FileName::of_artifact(id, hash).ok_or_else(|| {
                    FileError::Invalid(format!(
                        "an id of an artifact has 1 to 128 letters, digits, hyphens, underscores and dots, its hash has 64 hexadecimal digits in \
                         lower case, and these are none: `{id:.80}`, `{hash:.80}`"
                    ))
                })?;
                self.begin(file, order).await
            }
            ("POST", ["files"]) => self.begin(FileName::new_for_agents(), parsed(body)?).await,
            ("PUT", ["incoming", id, number]) => {
                let unfinished = files.unfinished(&incoming(id)?, Client::Operator)?;
                let number = number.parse().map_err(|_| FileError::Unknown)?;
                files.write_chunk(&unfinished, number, None, body.to_vec()).await?;
                Ok("{}".to_owned())
            }
            ("POST", ["incoming", id]) => {
                let record = files.finish(&incoming(id)?, Client::Operator, None).await?;
                written(&crate::files::FileView::of(&incoming(id)?, record))
            }
            ("DELETE", ["incoming", id]) => {
                files.abandon(&files.unfinished(&incoming(id)?, Client::Operator)?).await;
                Ok("{}".to_owned())
            }
            _ => Err(Failed::Unknown),
        }
    }

    async fn begin(&self, file: FileName, order: PutRequest) -> Result<String, Failed> {
        let PutRequest { name, size, sha256, mime_type, .. } = order;
        let mime_type = mime_type.unwrap_or_else(|| "application/octet-stream".to_owned());
        if name.len().max(mime_type.len()) > LONGEST_TEXT || sha256.len() != 64 {
            let words =
                "`name` and `mime_type` have at most 512 bytes, and `sha256` has 64 hexadecimal digits";
            return Err(FileError::Invalid(words.to_owned()).into());
        }
        let sha256 = sha256.to_ascii_lowercase();
        let record =
            FileRecord { name, mime_type, size, sha256, created_ms: 0, agent_id: None, action_id: None };
        self.files.begin(FileOrder { client: Client::Operator, file: file.clone(), record }).await?;
        written(&PutBegun { upload_id: file.as_str(), chunk_size: self.files.chunk_bytes(Client::Operator) })
    }

    async fn remove(&self, file: Option<FileName>) -> Result<String, Failed> {
        self.files.remove(&file.ok_or(FileError::Unknown)?).await?;
        Ok("{}".to_owned())
    }

    /// The newest files of a kind, as many as were asked for or as fit, and the room of all files.
    async fn list_files(&self, name: &str, kind: FileKind, query: &str) -> Result<String, Failed> {
        let mut listed = String::new();
        for file in self.files.list(kind, limit(query)).await? {
            let text = written(&file)?;
            if listed.len() + text.len() > LONGEST_LIST {
                break;
            }
            listed.push_str(if listed.is_empty() { "" } else { "," });
            listed.push_str(&text);
        }
        let (used, quota) = self.files.room();
        Ok(format!("{{\"{name}\":[{listed}],\"used_bytes\":{used},\"quota_bytes\":{quota}}}"))
    }
}

/// The name of a file that an operator is putting, as the answer to its begin has it.
fn incoming(id: &str) -> Result<FileName, FileError> {
    FileName::read(id).ok_or(FileError::Unknown)
}

/// The status and the words of a failure.
pub(super) fn answer(error: &FileError) -> (u16, String) {
    let status = match error {
        FileError::Unknown => 404,
        FileError::OfAnother => 403,
        FileError::Invalid(_) => 400,
        FileError::Exists(_) => 409,
        FileError::TooLarge { .. } => 413,
        FileError::Quota { .. } | FileError::AgentQuota | FileError::DiskFull => 507,
        FileError::TooMany(_) | FileError::Disk(_) | FileError::Memory | FileError::Store(_) => 503,
    };
    (status, json!({"error": error.to_string()}).to_string())
}

impl From<FileError> for Failed {
    fn from(error: FileError) -> Failed {
        Failed::File(error)
    }
}
