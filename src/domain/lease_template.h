/* lease_template.h - what a lease is made from. Pure. */
#pragma once

#include "domain/lease.h"

enum template_visibility { TEMPLATE_PUBLIC, TEMPLATE_PRIVATE, TEMPLATE_VISIBILITY_COUNT };
extern const char *const template_visibility_names[TEMPLATE_VISIBILITY_COUNT]; /* PUBLIC, PRIVATE */

struct lease_template {
	struct str               uuid, name, description, created_by;
	int64_t                  requires_approval;
	enum template_visibility visibility;
	struct str               cost_group, blueprint_id, blueprint_name;
	int64_t                  max_spend;
	struct str               budget_thresholds;
	int64_t                  duration_ms;
	struct str               duration_thresholds;
	int64_t                  created_ms, edited_ms;
	uint64_t                 version;
};

/* The limits of contract 2.5, for a template and for a lease as it would become. */
void template_check(const struct lease_template *t, const struct policy *policy, struct problems *ret);
void lease_check_limits(const struct lease *l, const struct policy *policy, struct problems *ret);
