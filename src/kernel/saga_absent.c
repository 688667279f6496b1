/* SPDX-License-Identifier: Apache-2.0 */
/* saga_absent.c - stands in until sagas are merged. */
#include "kernel/work_ops.h"

enum rc saga_find(struct session *s, struct work_finder *f, struct err *e)
{
	(void)s;
	(void)f;
	(void)e;
	return RC_OK;
}
enum rc saga_claim(struct session *s, struct work *w, struct err *e)
{
	(void)s;
	(void)w;
	return err_set(e, RC_INTERNAL, "no sagas");
}
void saga_perform(struct work *w)
{
	(void)w;
}
enum rc saga_settle(struct session *s, struct work *w, struct err *e)
{
	return saga_claim(s, w, e);
}
enum rc saga_extend(struct session *s, struct work *w, struct err *e)
{
	return saga_claim(s, w, e);
}
