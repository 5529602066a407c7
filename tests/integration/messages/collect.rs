//! The texts in a Rust source that people may read.

use proc_macro2::{TokenStream, TokenTree};
use syn::{
    Attribute, BinOp, Expr, ExprArray, ExprBinary, ExprCall, ExprMethodCall, ImplItemFn, ItemEnum, ItemFn, ItemStruct,
    Lit, LitStr, Macro, Meta, Pat, Token, TraitItemFn, Variant,
    punctuated::Punctuated,
    visit::{self, Visit},
};

/// Functions whose texts only a model reads.
pub const FOR_MODELS: &[&str] = &["description", "schema", "instructions", "families", "examples_for_model"];

/// Macros whose texts no person reads: logs, figures, and what the program asserts about itself.
const SILENT_MACROS: &[&str] = &[
    "assert",
    "assert_eq",
    "assert_ne",
    "concat",
    "counter",
    "debug",
    "debug_assert",
    "debug_assert_eq",
    "debug_span",
    "describe_counter",
    "describe_gauge",
    "describe_histogram",
    "env",
    "error",
    "error_span",
    "event",
    "gauge",
    "histogram",
    "include_bytes",
    "include_str",
    "info",
    "info_span",
    "matches",
    "option_env",
    "panic",
    "span",
    "todo",
    "trace",
    "trace_span",
    "unreachable",
    "warn",
    "warn_span",
];

/// Methods and functions whose texts are compared, looked up or given to a database.
const SILENT_CALLS: &[&str] = &[
    "batch_execute",
    "contains",
    "ends_with",
    "eq_ignore_ascii_case",
    "execute",
    "execute_batch",
    "expect",
    "expect_err",
    "find",
    "matches",
    "prepare",
    "prepare_cached",
    "query",
    "query_one",
    "query_opt",
    "query_row",
    "rfind",
    "rsplit",
    "rsplit_once",
    "split",
    "split_once",
    "splitn",
    "starts_with",
    "strip_prefix",
    "strip_suffix",
    "trim_end_matches",
    "trim_matches",
    "trim_start_matches",
];

/// The texts of a source, in its order, each once.
pub fn texts(source: &str) -> syn::Result<Vec<String>> {
    let mut collector = Collector::default();
    collector.visit_file(&syn::parse_file(source)?);
    Ok(collector.texts)
}

/// Returns true if a text is something to read: words with a space between them, or a label.
pub fn is_read(text: &str) -> bool {
    let outside = without_placeholders(text);
    let is_statement = ["SELECT ", "INSERT ", "UPDATE ", "DELETE FROM ", "CREATE ", "ALTER ", "PRAGMA ", "BEGIN "]
        .iter()
        .any(|word| text.trim_start().starts_with(word));
    let is_pattern = ["(?", r"\b", r"\s", r"\d"].iter().any(|mark| text.contains(mark));
    let is_alternatives = text.contains('|') && !text.contains(" | ") && !text.chars().any(char::is_uppercase);
    let is_sentence = outside.contains(' ') && outside.chars().any(char::is_alphabetic);
    !is_statement && !is_pattern && !is_alternatives && (is_sentence || is_label(text))
}

/// Returns true if a text is one word with a capital letter at its beginning only.
fn is_label(text: &str) -> bool {
    let word = text.trim_end_matches(['…', ':', '.', '?']);
    let mut characters = word.chars();
    characters.next().is_some_and(char::is_uppercase)
        && word.chars().count() > 1
        && characters.all(|character| character.is_lowercase() || character == '\'')
}

/// A text without `{…}`. Doubled braces stay, as they are braces in what is said.
fn without_placeholders(text: &str) -> String {
    let mut outside = String::new();
    let mut depth = 0_usize;
    for character in text.chars() {
        match character {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ if depth == 0 => outside.push(character),
            _ => {}
        }
    }
    outside
}

/// Returns true if a list holds words that people type, not sentences that the bot says.
fn are_words_to_recognize(list: &[String]) -> bool {
    list.len() > 1
        && list.iter().all(|text| {
            !text.chars().any(|c| c.is_uppercase() || matches!(c, '{' | '.' | ':' | '…' | '“')) && text.trim() == text
        })
}

#[derive(Default)]
struct Collector {
    texts: Vec<String>,
    /// True if the doc comments of the item are shown as help.
    in_help: bool,
}

impl Collector {
    fn push(&mut self, text: &str) {
        if is_read(text) && !self.texts.iter().any(|known| known == text) {
            self.texts.push(text.to_owned());
        }
    }

    /// The literals of tokens that are no list of expressions.
    fn tokens(&mut self, tokens: TokenStream) {
        for token in tokens {
            match token {
                TokenTree::Group(group) => self.tokens(group.stream()),
                TokenTree::Literal(literal) => {
                    if let Lit::Str(text) = Lit::new(literal) {
                        self.push(&text.value());
                    }
                }
                TokenTree::Ident(_) | TokenTree::Punct(_) => {}
            }
        }
    }

    /// A doc comment that is shown as help: its paragraphs, each as one text.
    fn help(&mut self, attributes: &[Attribute]) {
        if !self.in_help {
            return;
        }
        let mut paragraph = String::new();
        for line in attributes.iter().filter_map(doc_line) {
            if line.trim().is_empty() {
                self.push(&std::mem::take(&mut paragraph));
            } else {
                if !paragraph.is_empty() {
                    paragraph.push(' ');
                }
                paragraph.push_str(line.trim());
            }
        }
        self.push(&paragraph);
    }

    /// Visits an item whose doc comments are help if `clap` derives its parser.
    fn with_help(&mut self, attributes: &[Attribute], visit: impl FnOnce(&mut Self)) {
        let outer = std::mem::replace(&mut self.in_help, is_shown_as_help(attributes));
        self.help(attributes);
        visit(self);
        self.in_help = outer;
    }
}

fn doc_line(attribute: &Attribute) -> Option<String> {
    let Meta::NameValue(pair) = &attribute.meta else { return None };
    let Expr::Lit(value) = &pair.value else { return None };
    let Lit::Str(text) = &value.lit else { return None };
    pair.path.is_ident("doc").then(|| text.value())
}

fn is_shown_as_help(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::List(list) if list.path.is_ident("derive") => {
            let derived = list.tokens.to_string();
            ["Parser", "Subcommand", "Args", "ValueEnum"].iter().any(|name| derived.contains(name))
        }
        _ => false,
    })
}

impl<'ast> Visit<'ast> for Collector {
    fn visit_lit_str(&mut self, text: &'ast LitStr) {
        self.push(&text.value());
    }

    fn visit_pat(&mut self, _: &'ast Pat) {}

    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        let is_help = ["arg", "command", "clap"].iter().any(|name| attribute.path().is_ident(name));
        if (attribute.path().is_ident("error") || is_help)
            && let Meta::List(list) = &attribute.meta
        {
            self.tokens(list.tokens.clone());
        }
    }

    fn visit_item_struct(&mut self, item: &'ast ItemStruct) {
        self.with_help(&item.attrs, |collector| visit::visit_item_struct(collector, item));
    }

    fn visit_item_enum(&mut self, item: &'ast ItemEnum) {
        self.with_help(&item.attrs, |collector| visit::visit_item_enum(collector, item));
    }

    fn visit_field(&mut self, field: &'ast syn::Field) {
        self.help(&field.attrs);
        visit::visit_field(self, field);
    }

    fn visit_variant(&mut self, variant: &'ast Variant) {
        self.help(&variant.attrs);
        visit::visit_variant(self, variant);
    }

    fn visit_item_fn(&mut self, function: &'ast ItemFn) {
        if !FOR_MODELS.iter().any(|name| function.sig.ident == name) {
            visit::visit_item_fn(self, function);
        }
    }

    fn visit_impl_item_fn(&mut self, function: &'ast ImplItemFn) {
        if !FOR_MODELS.iter().any(|name| function.sig.ident == name) {
            visit::visit_impl_item_fn(self, function);
        }
    }

    fn visit_trait_item_fn(&mut self, function: &'ast TraitItemFn) {
        if !FOR_MODELS.iter().any(|name| function.sig.ident == name) {
            visit::visit_trait_item_fn(self, function);
        }
    }

    fn visit_expr_array(&mut self, array: &'ast ExprArray) {
        let texts: Option<Vec<String>> = array
            .elems
            .iter()
            .map(|element| match element {
                Expr::Lit(literal) => match &literal.lit {
                    Lit::Str(text) => Some(text.value()),
                    _ => None,
                },
                _ => None,
            })
            .collect();
        if !texts.is_some_and(|texts| are_words_to_recognize(&texts)) {
            visit::visit_expr_array(self, array);
        }
    }

    fn visit_expr_binary(&mut self, binary: &'ast ExprBinary) {
        let is_compared = matches!(binary.op, BinOp::Eq(_) | BinOp::Ne(_));
        for side in [&binary.left, &binary.right] {
            if !(is_compared && matches!(**side, Expr::Lit(_))) {
                self.visit_expr(side);
            }
        }
    }

    fn visit_expr_method_call(&mut self, call: &'ast ExprMethodCall) {
        if SILENT_CALLS.iter().any(|name| call.method == name) {
            self.visit_expr(&call.receiver);
        } else {
            visit::visit_expr_method_call(self, call);
        }
    }

    fn visit_expr_call(&mut self, call: &'ast ExprCall) {
        let is_silent = matches!(&*call.func, Expr::Path(path)
            if path.path.segments.last().is_some_and(|last| SILENT_CALLS.iter().any(|name| last.ident == name)));
        if !is_silent {
            visit::visit_expr_call(self, call);
        }
    }

    fn visit_macro(&mut self, call: &'ast Macro) {
        let name = call.path.segments.last().map(|last| last.ident.to_string()).unwrap_or_default();
        if SILENT_MACROS.contains(&name.as_str()) {
            return;
        }
        match call.parse_body_with(Punctuated::<Expr, Token![,]>::parse_terminated) {
            Ok(arguments) => arguments.iter().for_each(|argument| self.visit_expr(argument)),
            Err(_) => self.tokens(call.tokens.clone()),
        }
    }
}
