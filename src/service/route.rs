//! What a route is. Each stands in the file of its handlers; all else that is said of routes, the
//! router, the names of metrics, `/openapi.json` and the documents, is made from it.

use std::sync::Arc;

use axum::routing::MethodRouter;

use super::Service;

/// A path of the service.
pub struct Route {
    /// The path, with its parameters in braces.
    pub path: &'static str,
    /// Its methods in lower case, each with its operation as `/openapi.json` has it.
    pub methods: &'static [(&'static str, &'static str)],
    pub(super) router: fn() -> MethodRouter<Arc<Service>>,
}

/// Makes a route: its path, then for each method the handler and the `operationId`, by which the
/// file of its description in `openapi/` is named. Without that file it does not compile.
macro_rules! route {
    ($path:literal, $($method:ident $handler:ident $operation:literal),+) => {
        $crate::service::route::Route {
            path: $path,
            methods: &[$((
                stringify!($method),
                include_str!(concat!(
                    env!("CARGO_MANIFEST_DIR"),
                    "/src/service/openapi/",
                    $operation,
                    ".json",
                )),
            )),+],
            router: || axum::routing::MethodRouter::new()$(.$method($handler))+,
        }
    };
}
pub(super) use route;
