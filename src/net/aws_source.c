/* SPDX-License-Identifier: Apache-2.0 */
/*
 * aws_source.c - credentials that are fetched: for a web identity from STS, from a container's endpoint, and from the
 * endpoint of the instance we run on.
 *
 * Always true:
 *   1. No text of an answer gets into a message, except the code of an error of STS: the rest may be a secret.
 *   2. A token of ours goes only over https or to an address of this machine or its host.         [is_near()]
 *   3. Every answer has a limit of size and time; the instance's is short, since mostly nobody is there.
 *
 * Not here: IMDSv1, which hands out keys to whoever can make this machine fetch a URL.
 */
#include "net/aws_source.h"

#include <arpa/inet.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "net/fetch.h"

enum {
	ANSWER_MAX = 64 * 1024,
	FORM_MAX = 64 * 1024,
	STS_TIMEOUT_MS = 5000,
	CONTAINER_TIMEOUT_MS = 2000,
	INSTANCE_TIMEOUT_MS = 1000,
	HOST_MAX = 63,
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

/* What is between <name> and </name>, both exactly once. Empty otherwise. */
static struct str xml_inside(struct str xml, const char *name, struct arena *a)
{
	struct str  open = str_format(a, "<%s>", name), close = str_format(a, "</%s>", name);
	const char *from = memmem(xml.p, xml.n, open.p, open.n), *to;
	size_t      left;

	if (!from)
		return STR("");
	from += open.n;
	left = (size_t)(xml.p + xml.n - from);
	to = memmem(from, left, close.p, close.n);
	if (!to || memmem(from, left, open.p, open.n))
		return STR("");
	return str_of(from, (size_t)(to - from));
}

/* A text without markup and entities; keys and tokens have neither. Empty otherwise. */
static struct str xml_text(struct str xml, const char *name, struct arena *a)
{
	struct str text = str_trim(xml_inside(xml, name, a));

	if (text.n == 0 || memchr(text.p, '<', text.n) || memchr(text.p, '&', text.n))
		return STR("");
	return text;
}

static void add_field(struct buf *b, const char *name, struct str value)
{
	buf_addf(b, "&%s=", name);
	fetch_escape(b, value);
}

static enum rc make_form(const struct aws_identity_options *o, struct arena *a, struct str *ret, struct err *e)
{
	const char *session = o->env("AWS_ROLE_SESSION_NAME");
	struct str  token;
	struct buf  form;
	bool        fits;
	enum rc     rc;

	if ((rc = aws_read_file(o->env("AWS_WEB_IDENTITY_TOKEN_FILE"), a, &token, e)))
		return err_wrap(e, RC_INVALID, "AWS_WEB_IDENTITY_TOKEN_FILE");
	while (token.n && (token.p[token.n - 1] == '\n' || token.p[token.n - 1] == '\r'))
		token.n--;
	buf_init(&form, FORM_MAX);
	buf_add_text(&form, "Action=AssumeRoleWithWebIdentity&Version=2011-06-15");
	add_field(&form, "RoleArn", str_from(o->env("AWS_ROLE_ARN")));
	add_field(&form, "RoleSessionName", is_set(session) ? str_from(session) : STR("leasehold"));
	add_field(&form, "WebIdentityToken", token);
	fits = !form.is_full && token.n > 0;
	if (fits)
		*ret = str_dup(a, buf_str(&form));
	buf_fini(&form);
	return fits ? RC_OK : err_set(e, RC_INVALID, "AWS_WEB_IDENTITY_TOKEN_FILE must have 1 to 20000 bytes");
}

static const char *sts_url(const struct aws_identity_options *o, struct arena *a)
{
	const char *region = o->env("AWS_REGION");

	if (o->sts_endpoint)
		return str_format(a, "%s/", o->sts_endpoint).p;
	if (!is_set(region))
		region = o->env("AWS_DEFAULT_REGION");
	if (!is_set(region))
		return "https://sts.amazonaws.com/";
	return str_format(a, "https://sts.%s.%s/", region, aws_domain(region)).p;
}

static enum rc read_sts_answer(struct str xml, struct arena *a, struct aws_found *ret, struct err *e)
{
	struct str             inside = xml_inside(xml, "Credentials", a);
	struct aws_credentials c = { xml_text(inside, "AccessKeyId", a), xml_text(inside, "SecretAccessKey", a),
		                     xml_text(inside, "SessionToken", a) };
	int64_t                expires;

	if (c.access_key.n == 0 || c.secret_key.n == 0 || c.session_token.n == 0 ||
	    !iso_time_parse(xml_text(inside, "Expiration", a), &expires))
		return err_set(e, RC_UNAVAILABLE, "STS answered with something else than credentials");
	*ret = (struct aws_found){ c, wall_from_sec(expires) };
	return RC_OK;
}

enum rc aws_ask_sts(const char *what, struct fetch_request *req, struct arena *a, struct aws_found *ret, struct err *e)
{
	struct fetch_reply reply;
	struct str         code;
	enum rc            rc;

	req->method = "POST";
	req->total_timeout_ms = STS_TIMEOUT_MS;
	req->max_bytes = ANSWER_MAX;
	if ((rc = fetch(req, a, &reply, e)))
		return rc;
	if (reply.status == 200)
		return read_sts_answer(reply.body, a, ret, e);
	code = xml_text(reply.body, "Code", a);
	rc = refuse_status(what, reply.status, e);
	return code.n && code.n < 64 ? err_wrap(e, rc, "%.*s", STR_ARG(code)) : rc;
}

enum rc aws_source_web_identity(const struct aws_identity_options *o, struct arena *a, struct aws_found *ret,
                                struct err *e)
{
	struct fetch_request req = { .headers = { "Content-Type: application/x-www-form-urlencoded" } };
	enum rc              rc;

	if (!is_set(o->env("AWS_WEB_IDENTITY_TOKEN_FILE")))
		return err_set(e, RC_NOT_FOUND, "AWS_WEB_IDENTITY_TOKEN_FILE is not set");
	if (!is_set(o->env("AWS_ROLE_ARN")))
		return err_set(e, RC_INVALID, "AWS_ROLE_ARN must be set together with AWS_WEB_IDENTITY_TOKEN_FILE");
	if ((rc = make_form(o, a, &req.body, e)))
		return rc;
	req.url = sts_url(o, a);
	return aws_ask_sts("AssumeRoleWithWebIdentity", &req, a, ret, e);
}

/* --- container and instance ------------------------------------------------------------------------------------- */

/* Both answer with the same JSON. */
static enum rc read_json_answer(const char *who, struct str body, struct arena *a, struct aws_found *ret, struct err *e)
{
	CLEANUP(json_freep) json_t *answer = NULL;
	struct aws_credentials      c = { 0 };
	struct str                  expiration;
	int64_t                     expires = 0;

	if (json_parse(body, &answer, NULL) || !json_get_text(answer, "AccessKeyId", &c.access_key) ||
	    !json_get_text(answer, "SecretAccessKey", &c.secret_key) ||
	    !json_get_text(answer, "Token", &c.session_token) || !json_get_text(answer, "Expiration", &expiration) ||
	    c.access_key.n == 0 || c.secret_key.n == 0 || (expiration.n && !iso_time_parse(expiration, &expires)))
		return err_set(e, RC_UNAVAILABLE, "%s answered with something else than credentials", who);
	*ret = (struct aws_found){ { str_dup(a, c.access_key), str_dup(a, c.secret_key), str_dup(a, c.session_token) },
		                   wall_from_sec(expires) };
	return RC_OK;
}

/* The host of an http URL. Empty when it has a user, or anything that readers of URLs may understand differently. */
static struct str url_host(struct str url)
{
	struct str rest = str_of(url.p + strlen("http://"), url.n - strlen("http://"));
	size_t     n = 0;

	while (n < rest.n && !memchr("/?#", rest.p[n], 3))
		n++;
	rest.n = n;
	if (rest.n && rest.p[0] == '[') {
		rest = str_of(rest.p + 1, rest.n - 1);
		return memchr(rest.p, ']', rest.n) ? str_cut(&rest, ']') : STR("");
	}
	for (size_t i = 0; i < rest.n; i++)
		if (!memchr("0123456789.:localhost", rest.p[i], 21))
			return STR("");
	return str_cut(&rest, ':');
}

/* This machine, or an address that no router forwards. */
static bool is_near(struct str host)
{
	char            text[HOST_MAX + 1] = "";
	struct in_addr  v4;
	struct in6_addr v6;

	if (host.n == 0 || host.n > HOST_MAX)
		return false;
	memcpy(text, host.p, host.n);
	if (strcmp(text, "localhost") == 0)
		return true;
	if (inet_pton(AF_INET, text, &v4) == 1) {
		uint32_t address = ntohl(v4.s_addr);

		return address >> 24 == 127 || address >> 16 == (169 << 8 | 254);
	}
	/* fd00:ec2::23 is where EKS has its endpoint */
	return inet_pton(AF_INET6, text, &v6) == 1 &&
	       (IN6_IS_ADDR_LOOPBACK(&v6) || IN6_IS_ADDR_LINKLOCAL(&v6) || strcmp(text, "fd00:ec2::23") == 0);
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
	if (!str_starts_with(str_from(full), STR("https://")) &&
	    !(str_starts_with(str_from(full), STR("http://")) && is_near(url_host(str_from(full)))))
		return err_set(e, RC_INVALID,
		               "AWS_CONTAINER_CREDENTIALS_FULL_URI must be https, or http to a loopback or "
		               "link-local address");
	*ret = full;
	return RC_OK;
}

static enum rc container_token(const struct aws_identity_options *o, struct arena *a, struct str *ret, struct err *e)
{
	const char *path = o->env("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
	enum rc     rc;

	*ret = str_from(o->env("AWS_CONTAINER_AUTHORIZATION_TOKEN"));
	if (!is_set(path))
		return RC_OK;
	if ((rc = aws_read_file(path, a, ret, e)))
		return err_wrap(e, RC_INVALID, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
	while (ret->n && (ret->p[ret->n - 1] == '\n' || ret->p[ret->n - 1] == '\r'))
		ret->n--;
	return RC_OK;
}

enum rc aws_source_container(const struct aws_identity_options *o, struct arena *a, struct aws_found *ret,
                             struct err *e)
{
	struct fetch_request req = { .method = "GET",
		                     .total_timeout_ms = CONTAINER_TIMEOUT_MS,
		                     .max_bytes = ANSWER_MAX };
	struct fetch_reply   reply;
	struct str           token;
	enum rc              rc;

	if ((rc = container_url(o, a, &req.url, e)) || (rc = container_token(o, a, &token, e)))
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
	static const char  roles[] = "/latest/meta-data/iam/security-credentials/";
	const char        *base = o->imds_endpoint ? o->imds_endpoint : "http://169.254.169.254", *header;
	struct fetch_reply reply = { 0 };
	struct buf         path;
	struct str         role;
	enum rc            rc;

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
	buf_init(&path, URL_MAX);
	buf_add_text(&path, roles);
	fetch_escape(&path, role);
	rc = path.is_full ? err_set(e, RC_UNAVAILABLE, "the instance's endpoint names a role of %zu bytes", role.n)
	                  : ask_instance("GET", base, path.p, header, a, &reply, e);
	buf_fini(&path);
	return rc ? rc : read_json_answer("the instance's endpoint", reply.body, a, ret, e);
}
