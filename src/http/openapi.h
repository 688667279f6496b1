/* openapi.h - the API's description, made from the route table. */
#pragma once

#include "base/buf.h"
#include "base/str.h"

void openapi_write(struct str base_path, struct buf *b);
void apidoc_write(struct buf *b);
