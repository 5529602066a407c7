//! Faults that a test injects.

/// A fault in the handling of one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The request has no effect and is refused with this status, in the bridge's own error format,
    /// or in MCP with an error code of MCP. After a 500 the connection closes.
    Status(u16),
    /// A proxy in front of the bridge answers with this status and an HTML page; the bridge does
    /// not receive the request.
    Proxy(u16),
    /// The request takes effect, and the connection closes without an answer.
    LostAnswer,
    /// The connection closes without an effect.
    LostRequest,
    /// The request has no effect and no answer.
    Hang,
    /// Nothing is answered from this request on, `/health` included, until a restart.
    Stall,
    /// An event stream ends after its first event, or without any event if the first one would be
    /// final.
    CutStream,
    /// The body of the answer does not end.
    HugeAnswer,
    /// The bridge restarts before it handles the request.
    Restart,
}

/// The queued faults. A fault with a text applies only to requests whose `METHOD /path tool`
/// contains it.
#[derive(Debug, Default)]
pub(crate) struct Faults(Vec<(Fault, Option<String>)>);

impl Faults {
    /// Queues a fault.
    pub(crate) fn add(&mut self, fault: Fault, only: Option<&str>) {
        self.0.push((fault, only.map(str::to_owned)));
    }

    /// Removes and returns the first fault that applies to the request. [`Fault::CutStream`]
    /// applies only to event streams.
    pub(crate) fn take(&mut self, request: &str) -> Option<Fault> {
        let is_stream = request.starts_with("GET /jobs/");
        let applies = |(fault, only): &(Fault, Option<String>)| {
            only.as_ref().is_none_or(|only| request.contains(only.as_str()))
                && (*fault != Fault::CutStream || is_stream)
        };
        let at = self.0.iter().position(applies)?;
        Some(self.0.remove(at).0)
    }

    /// Removes all queued faults.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_applies_once_to_the_first_request_it_fits() {
        let mut faults = Faults::default();
        faults.add(Fault::CutStream, None);
        faults.add(Fault::LostAnswer, Some("set_parameter_value"));
        assert_eq!(faults.take("GET /health "), None);
        assert_eq!(faults.take("POST /mcp set_parameter_value"), Some(Fault::LostAnswer));
        assert_eq!(faults.take("POST /mcp set_parameter_value"), None);
        assert_eq!(faults.take("GET /jobs/1/events "), Some(Fault::CutStream));
    }
}
