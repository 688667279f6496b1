/* openapi.h - the API's description, made from the route table. */
#pragma once

#include "base/buf.h"
#include "base/str.h"

/* A whole OpenAPI 3.1 document, with the base path put into the paths, as text in the arena. */
struct str openapi_text(struct str base_path, struct arena *a);

/* The table of routes as Markdown: docs/api.md. */
void apidoc_write(struct buf *b);
