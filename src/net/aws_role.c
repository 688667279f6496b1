/* SPDX-License-Identifier: Apache-2.0 */
/*
 * aws_role.c - AssumeRole, signed with our own credentials.
 *
 * STS speaks forms and XML, so this is not a call of aws_client.c; what it shares with the other ways to ask STS is in aws_source.c. It is
 * asked once: who needs the credentials is a delivery or a step, which comes again when STS does not answer.
 */
#include "net/aws_role.h"

#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "net/aws_source.h"
#include "net/fetch.h"

#define FORM_TYPE "application/x-www-form-urlencoded; charset=utf-8"

enum { FORM_MAX = 8192 };

struct str aws_role_arn(const char *region, struct str account_id, struct str role, struct arena *a)
{
	const char *partition = "aws";

	if (strncmp(region, "cn-", 3) == 0)
		partition = "aws-cn";
	else if (strncmp(region, "us-gov-", 7) == 0)
		partition = "aws-us-gov";
	return str_format(a, "arn:%s:iam::%.*s:role/%.*s", partition, STR_ARG(account_id), STR_ARG(role));
}

static struct str make_form(struct str role_arn, struct str session, int seconds, struct arena *a)
{
	struct buf form;
	struct str ret;

	buf_init(&form, FORM_MAX);
	buf_addf(&form, "Action=AssumeRole&Version=2011-06-15&DurationSeconds=%d&RoleArn=", seconds);
	fetch_escape(&form, role_arn);
	buf_add_text(&form, "&RoleSessionName=");
	fetch_escape(&form, session);
	ret = str_dup(a, buf_str(&form));
	buf_fini(&form);
	return ret;
}

static const char *header(struct arena *a, const char *name, struct str value)
{
	return str_format(a, "%s: %.*s", name, STR_ARG(value)).p;
}

/* Exactly what is signed is sent. */
static void sign(const struct aws_role_options *o, const struct aws_credentials *own, struct arena *a,
                 struct fetch_request *req)
{
	struct str             path, host = aws_url_host(req->url, &path);
	struct sigv4_header    headers[] = { { STR("Host"), host }, { STR("Content-Type"), STR(FORM_TYPE) } };
	struct sigv4_request   text = { .method = STR("POST"),
		                        .path = path,
		                        .headers = headers,
		                        .header_count = ARRAY_LEN(headers),
		                        .body = req->body,
		                        .region = str_from(o->region),
		                        .service = STR("sts") };
	struct sigv4_signature signature;
	size_t                 n = 0;

	sigv4_sign(&text, own, clock_now(o->clock), a, &signature);
	req->headers[n++] = header(a, "Host", host);
	req->headers[n++] = "Content-Type: " FORM_TYPE;
	req->headers[n++] = header(a, "X-Amz-Date", signature.amz_date);
	req->headers[n++] = header(a, "Authorization", signature.authorization);
	if (own->session_token.n)
		req->headers[n++] = header(a, "X-Amz-Security-Token", own->session_token);
}

static const char *sts_url(const struct aws_role_options *o, struct arena *a)
{
	if (!o->endpoint || !o->endpoint[0])
		return str_format(a, "https://sts.%s.%s/", o->region, aws_domain(o->region)).p;
	return str_format(a, "%s/", o->endpoint).p;
}

enum rc aws_assume_role(const struct aws_role_options *o, struct str role_arn, struct str session, int seconds,
                        struct arena *a, struct aws_credentials *ret, struct err *e)
{
	struct fetch_request   req = { .url = sts_url(o, a), .body = make_form(role_arn, session, seconds, a) };
	struct aws_credentials own;
	struct aws_found       found;
	enum rc                rc = aws_identity_get(o->identity, a, &own, e);

	if (rc)
		return rc;
	sign(o, &own, a, &req);
	if ((rc = aws_ask_sts("AssumeRole", &req, a, &found, e)))
		return err_wrap(e, rc, "role %.*s", STR_ARG(role_arn));
	*ret = (struct aws_credentials){ str_dup(a, found.credentials.access_key),
		                         str_dup(a, found.credentials.secret_key),
		                         str_dup(a, found.credentials.session_token) };
	return RC_OK;
}
