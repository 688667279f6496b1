/* SPDX-License-Identifier: Apache-2.0 */
/*
 * aws_source.c - credentials that are fetched: for a web identity from STS, from a container's endpoint, and from the
 * endpoint of the instance we run on.
 *
 * Always true:
 *   1. No text of an answer gets into a message, except the code of an error of STS: the rest may be a secret.
 *   2. A token of ours goes only over https or to an address of this machine or its host.             [url_is_safe()]
 *   3. Every answer has a limit of size and time; the instance's is short, since mostly nobody is there.
 *
 * Not here: IMDSv1, which hands out keys to whoever can make this machine fetch a URL.
 */
#include "net/aws_source.h"

#include "base/addr.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/log.h"
#include "net/aws_xml.h"
#include "net/fetch.h"

enum {
	ANSWER_MAX = 64 * 1024,
	FORM_MAX = 64 * 1024,
	STS_TIMEOUT_MS = 5000,
	CONTAINER_TIMEOUT_MS = 2000,
	INSTANCE_TIMEOUT_MS = 1000,
	URL_MAX = 2048,
};

static bool is_set(const char *text)
{
	return text && text[0];
}

const char *aws_domain(const char *region)
{
	return strncmp(region, "cn-", 3) == 0 ? "amazonaws.com.cn" : "amazonaws.com";
}

/* An answer that is not 200: whose fault it is decides whether to try again later. */
static enum rc refuse_status(const char *who, int status, struct err *e)
{
	return err_set(e, status >= 500 || status == 429 ? RC_UNAVAILABLE : RC_DENIED, "%s answered with status %d",
	               who, status);
}

/* --- web identity ----------------------------------------------------------------------------------------------- */

/* The token in the file that this variable names, without line ends behind it. */
static enum rc read_token(const struct aws_identity_options *o, const char *variable, struct arena *a, struct str *ret,
                          struct err *e)
{
	if (aws_read_file(o->env(variable), a, ret, e))
		return err_wrap(e, RC_INVALID, "%s", variable);
	while (ret->n && (ret->p[ret->n - 1] == '\n' || ret->p[ret->n - 1] == '\r'))
		ret->n--;
	return RC_OK;
}

struct field {
	const char *name;
	struct str  value;
};

/* Empty when it is too long. */
static struct str make_form(const char *action, const struct field *fields, size_t count, struct arena *a)
{
	CLEANUP(buf_fini) struct buf form = BUF(FORM_MAX);

	buf_addf(&form, "Action=%s&Version=2011-06-15", action);
	for (size_t i = 0; i < count; i++) {
		buf_addf(&form, "&%s=", fields[i].name);
		fetch_escape(&form, fields[i].value);
	}
	return form.is_full ? STR("") : str_dup(a, buf_str(&form));
}

static const char *sts_url(const char *endpoint, const char *region, struct arena *a)
{
	if (is_set(endpoint))
		return str_format(a, "%s/", endpoint).p;
	if (!is_set(region))
		return "https://sts.amazonaws.com/";
	return str_format(a, "https://sts.%s.%s/", region, aws_domain(region)).p;
}

/* Everybody answers with the same members, except for the name of the token. */
static bool read_credentials(const json_t *answer, const char *token, struct arena *a, struct aws_found *ret)
{
	struct aws_credentials c = { 0 };
	struct str             expiration = STR("");
	int64_t                expires = 0;

	if (!json_get_text(answer, "AccessKeyId", &c.access_key) ||
	    !json_get_text(answer, "SecretAccessKey", &c.secret_key) ||
	    !json_get_text(answer, token, &c.session_token) || !json_get_text(answer, "Expiration", &expiration) ||
	    c.access_key.n == 0 || c.secret_key.n == 0 || (expiration.n && !iso_time_parse(expiration, &expires)))
		return false;
	*ret = (struct aws_found){ aws_credentials_dup(&c, a), wall_from_sec(expires) };
	return true;
}

static enum rc read_sts_answer(struct str xml, struct arena *a, struct aws_found *ret, struct err *e)
{
	CLEANUP(json_freep) json_t *answer = NULL;

	if (aws_xml_parse(xml, &answer, NULL) ||
	    !read_credentials(json_object_get(aws_xml_result(answer), "Credentials"), "SessionToken", a, ret) ||
	    !ret->credentials.session_token.n || !ret->expires.ms)
		return err_set(e, RC_UNAVAILABLE, "STS answered with something other than credentials");
	return RC_OK;
}

/* Whose code it answered with: RC_DENIED when it refuses, not when it cannot tell now, which has a 400 too. */
static enum rc refuse_sts(const char *what, int status, struct str code, struct err *e)
{
	enum rc rc = refuse_status(what, status, e);

	if (str_is_word_of(code, "Throttling ThrottlingException RequestThrottled IDPCommunicationError"))
		rc = RC_UNAVAILABLE;
	return code.n && code.n < 64 ? err_wrap(e, rc, "%.*s", STR_ARG(code)) : rc;
}

/* Not signed: the token in it is the proof. */
static enum rc ask_sts(const char *what, struct fetch_request *req, struct arena *a, struct aws_found *ret,
                       struct err *e)
{
	struct fetch_reply reply;
	struct str         code, message;
	enum rc            rc;

	req->method = "POST";
	req->total_timeout_ms = STS_TIMEOUT_MS;
	req->max_bytes = ANSWER_MAX;
	if ((rc = fetch(req, a, &reply, e)))
		return rc;
	if (reply.status == 200)
		return read_sts_answer(reply.body, a, ret, e);
	aws_read_error(&reply, a, &code, &message);
	return refuse_sts(what, reply.status, code, e);
}

enum rc aws_source_web_identity(const struct aws_identity_options *o, struct arena *a, struct aws_found *ret,
                                struct err *e)
{
	struct fetch_request req = { .headers = { "Content-Type: application/x-www-form-urlencoded" } };
	const char          *region = o->env("AWS_REGION"), *session = o->env("AWS_ROLE_SESSION_NAME");
	struct str           token;
	enum rc              rc;

	if (!is_set(o->env("AWS_WEB_IDENTITY_TOKEN_FILE")))
		return err_set(e, RC_NOT_FOUND, "AWS_WEB_IDENTITY_TOKEN_FILE is not set");
	if (!is_set(o->env("AWS_ROLE_ARN")))
		return err_set(e, RC_INVALID, "AWS_ROLE_ARN must be set together with AWS_WEB_IDENTITY_TOKEN_FILE");
	if ((rc = read_token(o, "AWS_WEB_IDENTITY_TOKEN_FILE", a, &token, e)))
		return rc;
	req.body = make_form("AssumeRoleWithWebIdentity",
	                     (struct field[]){ { "RoleArn", str_from(o->env("AWS_ROLE_ARN")) },
	                                       { "RoleSessionName", str_from(is_set(session) ? session : "leasehold") },
	                                       { "WebIdentityToken", token } },
	                     3, a);
	if (!req.body.n || !token.n)
		return err_set(e, RC_INVALID, "AWS_WEB_IDENTITY_TOKEN_FILE must have 1 to 20000 bytes");
	req.url = sts_url(o->sts_endpoint, is_set(region) ? region : o->env("AWS_DEFAULT_REGION"), a);
	return ask_sts("AssumeRoleWithWebIdentity", &req, a, ret, e);
}

/* --- a role that our own credentials may assume ------------------------------------------------------------------ */

struct str aws_role_arn(const char *region, struct str account_id, struct str role, struct arena *a)
{
	const char *partition = "aws";

	if (strncmp(region, "cn-", 3) == 0)
		partition = "aws-cn";
	else if (strncmp(region, "us-gov-", 7) == 0)
		partition = "aws-us-gov";
	return str_format(a, "arn:%s:iam::%.*s:role/%.*s", partition, STR_ARG(account_id), STR_ARG(role));
}

/* As every call to AWS, but neither request nor answer: they are secret. */
static void log_role(const struct aws_role *r, const struct aws_reply *reply, int64_t ms, enum rc rc)
{
	struct log_field fields[] = { LOG_STR("service", STR("sts")),
		                      LOG_STR("operation", STR("AssumeRole")),
		                      LOG_STR("role", r->arn),
		                      LOG_STR("request_id", reply->request_id),
		                      LOG_STR("code", reply->error_type),
		                      LOG_NUM("attempts", reply->attempts),
		                      LOG_NUM("status", reply->status),
		                      LOG_NUM("duration_ms", ms) };

	if (log_wants(LOG_DEBUG))
		log_write(LOG_DEBUG, "aws", fields, ARRAY_LEN(fields), "sts:AssumeRole: %s",
		          rc_text(rc                     ? rc
		                  : reply->status == 200 ? RC_OK
		                                         : RC_DENIED));
}

enum rc aws_source_role(const struct aws_identity_options *o, struct arena *a, struct aws_found *ret, struct err *e)
{
	const struct aws_role *r = o->role;
	struct field           fields[5] = { { "DurationSeconds", str_format(a, "%d", r->seconds) },
		                             { "RoleArn", r->arn },
		                             { "RoleSessionName", r->session } };
	size_t                 count = 3;
	struct aws_request     req = { .type = STR("application/x-www-form-urlencoded; charset=utf-8"),
		                       .shown = "AssumeRole" };
	struct aws_reply       reply;
	struct mono            began = mono_now();
	enum rc                rc;

	if (r->external_id.n)
		fields[count++] = (struct field){ "ExternalId", r->external_id };
	if (r->source_identity.n)
		fields[count++] = (struct field){ "SourceIdentity", r->source_identity };
	req.body = make_form("AssumeRole", fields, count, a);
	rc = aws_send(r->sts, &req, a, &reply, e);
	log_role(r, &reply, mono_now().ms - began.ms, rc);
	if (rc)
		return rc == RC_DENIED ? rc
		                       : err_wrap(e, rc, "role %.*s", STR_ARG(r->arn)); /* denied: the hop before */
	if (reply.status == 200)
		rc = read_sts_answer(reply.body, a, ret, e);
	else
		rc = refuse_sts("AssumeRole", reply.status, reply.error_type, e);
	return rc ? err_wrap(e, rc, "role %.*s", STR_ARG(r->arn)) : RC_OK;
}

/* Asked once: whatever needs the credentials, a delivery or a step, is tried again when STS does not answer. */
enum rc aws_assume_role(const struct aws_role_options *o, struct str role_arn, struct str session, struct arena *a,
                        struct aws_credentials *ret, struct err *e)
{
	struct aws_client_options client = { .endpoint = o->endpoint,
		                             .region = o->region,
		                             .service = "sts",
		                             .identity = o->identity,
		                             .clock = o->clock,
		                             .attempts_max = 1 };
	struct aws_role           role = {
		          .sts = aws_client_new(&client), .arn = role_arn, .session = session, .seconds = AWS_SESSION_MAX_SEC
	};
	struct aws_found found;
	enum rc          rc = aws_source_role(&(struct aws_identity_options){ .role = &role }, a, &found, e);

	aws_client_free(role.sts);
	if (rc)
		return rc;
	*ret = found.credentials;
	return RC_OK;
}

/* --- container and instance ------------------------------------------------------------------------------------- */

static enum rc read_json_answer(const char *who, struct str body, struct arena *a, struct aws_found *ret, struct err *e)
{
	CLEANUP(json_freep) json_t *answer = NULL;

	if (json_parse(body, &answer, NULL) || !read_credentials(answer, "Token", a, ret))
		return err_set(e, RC_UNAVAILABLE, "%s answered with something other than credentials", who);
	return RC_OK;
}

static enum rc container_url(const struct aws_identity_options *o, struct arena *a, const char **ret, struct err *e)
{
	const char *relative = o->env("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
	const char *full = o->env("AWS_CONTAINER_CREDENTIALS_FULL_URI");

	if (is_set(relative)) {
		if (relative[0] != '/')
			return err_set(e, RC_INVALID, "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI must begin with /");
		*ret = str_format(a, "%s%s", o->container_endpoint ? o->container_endpoint : "http://169.254.170.2",
		                  relative)
		               .p;
		return RC_OK;
	}
	if (!is_set(full))
		return err_set(e, RC_NOT_FOUND, "AWS_CONTAINER_CREDENTIALS_* is not set");
	if (!url_is_safe(str_from(full), ADDR_LINK_LOCAL))
		return err_set(e, RC_INVALID,
		               "AWS_CONTAINER_CREDENTIALS_FULL_URI must be https, or http to a loopback or "
		               "link-local address");
	*ret = full;
	return RC_OK;
}

enum rc aws_source_container(const struct aws_identity_options *o, struct arena *a, struct aws_found *ret,
                             struct err *e)
{
	struct fetch_request req = { .method = "GET",
		                     .total_timeout_ms = CONTAINER_TIMEOUT_MS,
		                     .max_bytes = ANSWER_MAX };
	static const char    token_file[] = "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE";
	struct str           token = str_from(o->env("AWS_CONTAINER_AUTHORIZATION_TOKEN"));
	struct fetch_reply   reply;
	enum rc              rc;

	if ((rc = container_url(o, a, &req.url, e)) ||
	    (is_set(o->env(token_file)) && (rc = read_token(o, token_file, a, &token, e))))
		return rc;
	if (token.n)
		req.headers[0] = str_format(a, "Authorization: %.*s", STR_ARG(token)).p;
	if ((rc = fetch(&req, a, &reply, e)))
		return rc;
	if (reply.status != 200)
		return refuse_status("the container's endpoint", reply.status, e);
	return read_json_answer("the container's endpoint", reply.body, a, ret, e);
}

static enum rc ask_instance(const char *method, const char *base, const char *path, const char *header, struct arena *a,
                            struct fetch_reply *ret, struct err *e)
{
	struct fetch_request req = { .method = method,
		                     .url = str_format(a, "%s%s", base, path).p,
		                     .headers = { header },
		                     .connect_timeout_ms = INSTANCE_TIMEOUT_MS,
		                     .total_timeout_ms = INSTANCE_TIMEOUT_MS,
		                     .max_bytes = ANSWER_MAX };
	enum rc              rc = fetch(&req, a, ret, e);

	if (rc)
		return rc;
	return ret->status == 200 ? RC_OK : refuse_status("the instance's endpoint", ret->status, e);
}

enum rc aws_source_instance(const struct aws_identity_options *o, struct arena *a, struct aws_found *ret, struct err *e)
{
	static const char            roles[] = "/latest/meta-data/iam/security-credentials/";
	const char                  *base = o->imds_endpoint ? o->imds_endpoint : "http://169.254.169.254", *header;
	struct fetch_reply           reply = { 0 };
	CLEANUP(buf_fini) struct buf path = BUF(URL_MAX);
	struct str                   role;
	enum rc                      rc;

	if (str_eq_nocase(str_from(o->env("AWS_EC2_METADATA_DISABLED")), STR("true")))
		return err_set(e, RC_NOT_FOUND, "instance metadata is disabled");
	if (ask_instance("PUT", base, "/latest/api/token", "X-aws-ec2-metadata-token-ttl-seconds: 21600", a, &reply,
	                 NULL))
		return err_set(e, RC_NOT_FOUND, "instance metadata does not answer");
	header = str_format(a, "X-aws-ec2-metadata-token: %.*s", STR_ARG(reply.body)).p;
	rc = ask_instance("GET", base, roles, header, a, &reply, NULL);
	if (rc == RC_DENIED && reply.status == 404)
		return err_set(e, RC_NOT_FOUND, "the instance has no role");
	if (rc)
		return err_set(e, rc, "the instance's endpoint does not name a role");
	role = str_trim(str_cut(&reply.body, '\n'));
	buf_add_text(&path, roles);
	fetch_escape(&path, role);
	rc = path.is_full ? err_set(e, RC_UNAVAILABLE, "the instance's endpoint names a role of %zu bytes", role.n)
	                  : ask_instance("GET", base, path.p, header, a, &reply, e);
	return rc ? rc : read_json_answer("the instance's endpoint", reply.body, a, ret, e);
}
