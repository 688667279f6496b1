/* openapi.h - the API's description, made from the route table. */
#pragma once

#include "base/buf.h"
#include "base/str.h"

/* A whole OpenAPI 3.1 document, with the base path put into the paths. */
void openapi_write(struct str base_path, struct buf *b);

/* The same for people: docs/api.md. */
void apidoc_write(struct buf *b);
