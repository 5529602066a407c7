//! `/sandbox/…`: faults and the ledger, for a workspace in a separate process.

use std::sync::Arc;

use axum::{Json, extract::State, http::StatusCode};
use serde::Deserialize;

use super::{faults::Fault, ledger::Recorded, server::Server};

/// One fault or several.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Faulty {
    Several(Vec<Fault>),
    One(Fault),
}

/// `POST /sandbox/faults`
pub(super) async fn faults(State(server): State<Arc<Server>>, Json(faults): Json<Faulty>) -> StatusCode {
    let faults = match faults {
        Faulty::Several(faults) => faults,
        Faulty::One(fault) => vec![fault],
    };
    for fault in faults {
        server.inject(fault);
    }
    StatusCode::NO_CONTENT
}

/// `GET /sandbox/ledger`
pub(super) async fn ledger(State(server): State<Arc<Server>>) -> Json<Recorded> {
    Json(server.ledger.read())
}

impl Server {
    pub(super) fn inject(&self, fault: Fault) {
        match &fault {
            Fault::Disconnect { reason, queued } => self.sockets.disconnect(reason, *queued, self.options.linger),
            Fault::DropSockets => self.sockets.break_all(),
            _ => self.faults().add(fault),
        }
    }
}
