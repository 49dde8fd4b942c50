//! KeyService: public halves with their dates.

use super::access::{Act, require};
use super::status::{self, IntoStatus};
use super::{caller, convert, name};
use crate::clock;
use crate::store::{self, Store};
use std::sync::Arc;
use tonic::{Request, Response, Status};
use tribunal_proto::v1;
use tribunal_proto::v1::key_service_server::KeyService;

pub(super) struct Keys {
    pub(super) store: Arc<dyn Store>,
}

#[tonic::async_trait]
impl KeyService for Keys {
    async fn list_keys(
        &self,
        request: Request<v1::ListKeysRequest>,
    ) -> Result<Response<v1::ListKeysResponse>, Status> {
        let caller = caller(&request)?;
        require(&caller, Act::ReadKeys).map_err(IntoStatus::into_status)?;
        let asked = request.into_inner();
        let size = name::page_size(asked.page_size, 50, 500).map_err(|v| status::fields(&[v]))?;
        let start = name::page_start(&asked.page_token).map_err(|v| status::fields(&[v]))?;
        let keys = store::off(&self.store, |s| s.keys())
            .await
            .map_err(IntoStatus::into_status)?;
        let (keys, next_page_token) = name::page(keys, start, size);
        let now = clock::now();
        Ok(Response::new(v1::ListKeysResponse {
            keys: keys.iter().map(|key| convert::key(key, now)).collect(),
            next_page_token,
        }))
    }
}
