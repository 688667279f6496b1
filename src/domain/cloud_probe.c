/* SPDX-License-Identifier: Apache-2.0 */
/* cloud_probe.c - the words of the probe. */
#include "domain/ports/cloud_probe.h"

const char *const probe_verdict_names[PROBE_VERDICT_COUNT] = { "ok", "denied", "missing", "unreachable", "not tried" };
