//! Faults on purpose, set by a test.

/// A fault of one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The request is refused with this status in the bridge's envelope, and has no effect. After a 500 the connection
    /// closes. MCP has codes of its own for it.
    Status(u16),
    /// A proxy in front answers with this status and a page; the bridge never sees the request.
    Proxy(u16),
    /// The request takes effect, and the connection closes without an answer.
    LostAnswer,
    /// The connection closes without an effect.
    LostRequest,
    /// The request has no effect and no answer.
    Hang,
    /// Nothing is answered from this request on, `/health` included, until a restart.
    Stall,
    /// An event stream ends after its first event, and without one if that would be final.
    CutStream,
    /// The answer does not end.
    HugeAnswer,
    /// The bridge restarts before it looks at the request.
    Restart,
}

/// The faults that are yet to come, each with a text that `METHOD /path tool` must contain.
#[derive(Debug, Default)]
pub(crate) struct Faults(Vec<(Fault, Option<String>)>);

impl Faults {
    /// Queues a fault.
    pub(crate) fn add(&mut self, fault: Fault, only: Option<&str>) {
        self.0.push((fault, only.map(str::to_owned)));
    }

    /// Takes the first fault that fits the request. A cut waits for a stream.
    pub(crate) fn take(&mut self, request: &str) -> Option<Fault> {
        let is_stream = request.starts_with("GET /jobs/");
        let fits = |(fault, only): &(Fault, Option<String>)| {
            only.as_ref().is_none_or(|only| request.contains(only.as_str()))
                && (*fault != Fault::CutStream || is_stream)
        };
        let at = self.0.iter().position(fits)?;
        Some(self.0.remove(at).0)
    }

    /// Forgets them all.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_hits_the_first_request_it_fits_and_is_gone() {
        let mut faults = Faults::default();
        faults.add(Fault::CutStream, None);
        faults.add(Fault::LostAnswer, Some("set_parameter_value"));
        assert_eq!(faults.take("GET /health "), None);
        assert_eq!(faults.take("POST /mcp set_parameter_value"), Some(Fault::LostAnswer));
        assert_eq!(faults.take("POST /mcp set_parameter_value"), None);
        assert_eq!(faults.take("GET /jobs/1/events "), Some(Fault::CutStream));
    }
}
