//! A model for each purpose.

use std::{collections::HashMap, sync::Arc};

use async_trait::async_trait;

use crate::{Error, Model, Purpose, Request, Response};

/// A model for all purposes, and other models for some of them.
#[derive(Clone, Debug)]
pub struct ModelByPurpose {
    general: Arc<dyn Model>,
    others: HashMap<Purpose, Arc<dyn Model>>,
}

impl ModelByPurpose {
    /// Creates it with a model for all purposes.
    pub fn new(general: Arc<dyn Model>) -> Self {
        Self { general, others: HashMap::new() }
    }

    /// Sets the model for a purpose.
    #[must_use]
    pub fn with(mut self, purpose: Purpose, model: Arc<dyn Model>) -> Self {
        self.others.insert(purpose, model);
        self
    }

    /// Replaces each model that is on a server.
    #[must_use]
    pub fn map_remote(self, replace: impl Fn(Arc<dyn Model>) -> Arc<dyn Model>) -> Self {
        let replace = |model: Arc<dyn Model>| if model.is_remote() { replace(model) } else { model };
        let others = self.others.into_iter().map(|(purpose, model)| (purpose, replace(model))).collect();
        Self { general: replace(self.general), others }
    }

    /// Returns the model for a purpose.
    pub fn model_for(&self, purpose: Purpose) -> &Arc<dyn Model> {
        self.others.get(&purpose).unwrap_or(&self.general)
    }

    /// Returns the model for all purposes that have none of their own.
    pub fn general(&self) -> &Arc<dyn Model> {
        &self.general
    }
}

/// The name, and whether calls cost anything, are those of the general model.
#[async_trait]
impl Model for ModelByPurpose {
    fn name(&self) -> &str {
        self.general.name()
    }

    fn is_remote(&self) -> bool {
        self.general.is_remote()
    }

    async fn respond(&self, request: &Request) -> Result<Response, Error> {
        self.model_for(request.purpose).respond(request).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ToolChoice, Usage};

    #[derive(Debug)]
    struct Named(&'static str);

    #[async_trait]
    impl Model for Named {
        fn name(&self) -> &str {
            self.0
        }

        async fn respond(&self, _: &Request) -> Result<Response, Error> {
            let usage = Usage { model: self.0.to_owned(), ..Usage::default() };
            Ok(Response { content: Vec::new(), stop_reason: "end_turn".to_owned(), usage })
        }
    }

    #[tokio::test]
    async fn each_purpose_has_its_model() {
        let model = ModelByPurpose::new(Arc::new(Named("large"))).with(Purpose::Classify, Arc::new(Named("small")));
        assert_eq!(model.name(), "large");
        for (purpose, name) in [(Purpose::Gather, "large"), (Purpose::Classify, "small")] {
            let request = Request {
                purpose,
                instructions: "".into(),
                tools: [].into(),
                history: Vec::new(),
                situation: serde_json::Value::Null,
                exchange: Vec::new(),
                tool_choice: ToolChoice::Auto,
                answer_schema: None,
                max_tokens: 1,
                payer: Default::default(),
                words: None,
            };
            assert_eq!(model.respond(&request).await.unwrap().usage.model, name);
        }
    }
}
