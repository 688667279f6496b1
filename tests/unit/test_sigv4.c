/* SPDX-License-Identifier: Apache-2.0 */
/* The first table is AWS's published test suite. A comparison with another implementation is in tests/api. */
#include "test.h"

#include <stdio.h>

#include "base/arena.h"
#include "net/sigv4.h"

#define LETTERS "-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
#define TOKEN                                                                                                              \
	"AQoDYXdzEPT//////////wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKWHGBuFqwAeMicRXmxfpSPfIeoIYRqTflfKD8YUuwt" \
	"hAx7mSEI/qkPpKPi/kMcGdQrmGdeehM4IC1NtBmUpp2wUE8phUZampKsburEDy0KPkyQDYwT7WZ0wq5VSXDvp75YU9HFvlRd8Tx6q6fE8YQcHNV"  \
	"XAkiY9q6d+xo0rKwT38xVqr7ZD0u0iPPkUL64lIZbqBAz+scqKmlzm8FDrypNC9Yjc8fPOLn9FX9KSYvKTr4rvx3iSIlTJabIQwj2ICCR/oLxBA=="
#define HOST "Host:example.amazonaws.com\n"
#define FORM "Content-Type:application/x-www-form-urlencoded\n"

enum { HEADERS_MAX = 16 };

struct vector {
	const char *label, *method, *path, *query;
	const char *headers; /* "Name:value\n" each */
	const char *body, *token;
	const char *signature;
};

/* clang-format off */
static const struct vector suite[] = {
	{ "get-header-key-duplicate", "GET", "/", "", HOST "My-Header1:value2\nMy-Header1:value2\nMy-Header1:value1\n", "", "",
	  "c9d5ea9f3f72853aea855b47ea873832890dbdd183b4468f858259531a5138ea" },
	{ "get-header-value-order", "GET", "/", "",
	  HOST "My-Header1:value4\nMy-Header1:value1\nMy-Header1:value3\nMy-Header1:value2\n", "", "",
	  "08c7e5a9acfcfeb3ab6b2185e75ce8b1deb5e634ec47601a50643f830c755c01" },
	{ "get-header-value-trim", "GET", "/", "", HOST "My-Header1: value1\nMy-Header2: \"a   b   c\"\n", "", "",
	  "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736" },
	{ "get-unreserved", "GET", "/" LETTERS, "", HOST, "", "",
	  "07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f" },
	{ "get-utf8", "GET", "/\u1234", "", HOST, "", "",
	  "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85" },
	{ "get-space", "GET", "/example space/", "", HOST, "", "",
	  "652487583200325589f1fba4c7e578f72c47cb61beeca81406b39ddec1366741" },
	{ "get-vanilla", "GET", "/", "", HOST, "", "",
	  "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31" },
	{ "get-vanilla-empty-query-key", "GET", "/", "Param1=value1", HOST, "", "",
	  "a67d582fa61cc504c4bae71f336f98b97f1ea3c7a6bfe1b6e45aec72011b9aeb" },
	{ "get-vanilla-query-order-key", "GET", "/", "Param1=value2&Param1=Value1", HOST, "", "",
	  "eedbc4e291e521cf13422ffca22be7d2eb8146eecf653089df300a15b2382bd1" },
	{ "get-vanilla-query-order-key-case", "GET", "/", "Param2=value2&Param1=value1", HOST, "", "",
	  "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500" },
	{ "get-vanilla-query-order-value", "GET", "/", "Param1=value2&Param1=value1", HOST, "", "",
	  "5772eed61e12b33fae39ee5e7012498b51d56abc0abb7c60486157bd471c4694" },
	{ "get-vanilla-query-unreserved", "GET", "/", LETTERS "=" LETTERS, HOST, "", "",
	  "9c3e54bfcdf0b19771a7f523ee5669cdf59bc7cc0884027167c21bb143a40197" },
	{ "get-vanilla-utf8-query", "GET", "/", "\u1234=bar", HOST, "", "",
	  "2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04" },
	{ "get-relative", "GET", "/example/..", "", HOST, "", "",
	  "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31" },
	{ "get-relative-relative", "GET", "/example1/example2/../..", "", HOST, "", "",
	  "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31" },
	{ "get-slash", "GET", "//", "", HOST, "", "",
	  "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31" },
	{ "get-slash-dot-slash", "GET", "/./", "", HOST, "", "",
	  "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31" },
	{ "get-slash-pointless-dot", "GET", "/./example", "", HOST, "", "",
	  "ef75d96142cf21edca26f06005da7988e4f8dc83a165a80865db7089db637ec5" },
	{ "get-slashes", "GET", "//example//", "", HOST, "", "",
	  "9a624bd73a37c9a373b5312afbebe7a714a789de108f0bdfe846570885f57e84" },
	{ "post-header-key-sort", "POST", "/", "", "My-Header1:value1\n" HOST, "", "",
	  "c5410059b04c1ee005303aed430f6e6645f61f4dc9e1461ec8f8916fdf18852c" },
	{ "post-header-value-case", "POST", "/", "", HOST "My-Header1:VALUE1\n", "", "",
	  "cdbc9802e29d2942e5e10b5bccfdd67c5f22c7c4e8ae67b53629efa58b974b7d" },
	{ "post-vanilla", "POST", "/", "", HOST, "", "",
	  "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b" },
	{ "post-vanilla-query", "POST", "/", "Param1=value1", HOST, "", "",
	  "28038455d6de14eafc1f9222cf5aa6f1a96197d7deb8263271d420d138af7f11" },
	{ "post-x-www-form-urlencoded", "POST", "/", "", FORM HOST, "Param1=value1", "",
	  "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a" },
	{ "post-x-www-form-urlencoded-parameters", "POST", "/", "",
	  "Content-Type:application/x-www-form-urlencoded; charset=utf8\n" HOST, "Param1=value1", "",
	  "1a72ec8f64bd914b0e42e42607c7fbce7fb2c7465f63e3092b3b0d39fa77a6fe" },
	{ "post-sts-token", "POST", "/", "", HOST, "", TOKEN,
	  "85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead" },
};
/* clang-format on */

static size_t split_headers(const char *text, struct sigv4_header ret[HEADERS_MAX])
{
	struct str rest = str_from(text);
	size_t     n = 0;

	while (rest.n) {
		struct str value = str_cut(&rest, '\n');

		CHECK(n < HEADERS_MAX);
		ret[n].name = str_cut(&value, ':');
		ret[n++].value = value;
	}
	return n;
}

static struct sigv4_signature sign_as(const struct vector *v, struct arena *a)
{
	struct sigv4_header    headers[HEADERS_MAX];
	struct sigv4_request   req = { .method = str_from(v->method),
		                       .path = str_from(v->path),
		                       .query = str_from(v->query),
		                       .headers = headers,
		                       .header_count = split_headers(v->headers, headers),
		                       .body = str_from(v->body),
		                       .region = STR("us-east-1"),
		                       .service = STR("service") };
	struct aws_credentials credentials = { STR("AKIDEXAMPLE"), STR("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"),
		                               str_from(v->token) };
	struct sigv4_signature ret;

	sigv4_sign(&req, &credentials, wall_from_sec(1440938160), a, &ret);
	return ret;
}

static struct str signature_of(struct str authorization)
{
	CHECK(authorization.n > 64);
	return str_of(authorization.p + authorization.n - 64, 64);
}

static struct str sign(const struct vector *v, struct arena *a)
{
	return signature_of(sign_as(v, a).authorization);
}

TEST(the_published_vectors_are_met)
{
	struct arena a = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(suite); i++) {
		CASE(suite[i].label);
		CHECK(str_eq(sign(&suite[i], &a), str_from(suite[i].signature)));
		arena_reset(&a);
	}
	arena_fini(&a);
}

TEST(the_authorization_names_key_scope_and_headers)
{
	static const struct vector v = { "", "POST", "/", "", "X-Amz-Target: T.Op\n" FORM HOST, "{}", "token", "" };
	struct arena               a = { 0 };
	struct sigv4_signature     s = sign_as(&v, &a);

	CHECK(str_eq(s.amz_date, STR("20150830T123600Z")));
	CHECK(str_starts_with(
	        s.authorization,
	        STR("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, "
	            "SignedHeaders=content-type;host;x-amz-date;x-amz-security-token;x-amz-target, Signature=")));
	arena_fini(&a);
}

/* clang-format off */
static const struct {
	const char *label;
	bool        are_equal;
	struct vector left, right;
} pairs[] = {
	{ "a name without = is one with an empty value", true, { .query = "a" }, { .query = "a=" } },
	{ "escapes may be in lower case", true, { .query = "a=x%2fy" }, { .query = "a=x%2Fy" } },
	{ "a reserved character may come without its escape", true, { .query = "a=x:/y" }, { .query = "a=x%3A%2Fy" } },
	{ "an escape of a plain letter is that letter", true, { .query = "a=%61" }, { .query = "a=a" } },
	{ "+ and %20 are a blank", true, { .query = "a=b+c" }, { .query = "a=b%20c" } },
	{ "%2B is no blank", false, { .query = "a=b%2Bc" }, { .query = "a=b%20c" } },
	{ "names are sorted before values: a sorts before a-", true, { .query = "a-=1&a=2" }, { .query = "a=2&a-=1" } },
	{ "an = in a value belongs to the value", true, { .query = "a=b=c" }, { .query = "a=b%3Dc" } },
	{ "empty parts of a query do not count", true, { .query = "&a=1&&" }, { .query = "a=1" } },
	{ "a % that begins no escape stands for itself", true, { .query = "a=5%" }, { .query = "a=5%25" } },
	{ "empty segments of a path do not count", true, { .path = "/a//b" }, { .path = "/a/b" } },
	{ "no path is /", true, { .path = "" }, { .path = "/" } },
	{ ".. does not leave the root", true, { .path = "/../../a" }, { .path = "/a" } },
	{ "an escaped slash in a path is no slash", false, { .path = "/a%2Fb" }, { .path = "/a/b" } },
	{ "a slash at the end matters", false, { .path = "/a/" }, { .path = "/a" } },
	{ "blanks and tabs in a header count as one blank", true, { .headers = "A: x \t y\t\n" }, { .headers = "A:x y\n" } },
	{ "header names are equal in any case", true, { .headers = "aB:1\n" }, { .headers = "Ab:1\n" } },
	{ "the order of equal headers matters", false, { .headers = "A:1\nA:2\n" }, { .headers = "A:2\nA:1\n" } },
	{ "equal headers are joined by a comma", true, { .headers = "A:1\nA:2\n" }, { .headers = "A:1,2\n" } },
	{ "the order of other headers does not", true, { .headers = "A:1\nB:2\n" }, { .headers = "B:2\nA:1\n" } },
	{ "a header without a value counts", false, { .headers = "A:\nB:1\n" }, { .headers = "B:1\n" } },
	{ "the body counts", false, { .body = "a" }, { .body = "b" } },
	{ "the token counts", false, { .token = "a" }, { .token = "b" } },
};
/* clang-format on */

static struct vector complete(struct vector v)
{
	v.method = "GET";
	v.path = v.path ? v.path : "/";
	v.query = v.query ? v.query : "";
	v.headers = v.headers ? v.headers : HOST;
	v.body = v.body ? v.body : "";
	v.token = v.token ? v.token : "";
	return v;
}

TEST(what_the_service_cannot_tell_apart_is_signed_alike)
{
	struct arena a = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
		struct vector left = complete(pairs[i].left), right = complete(pairs[i].right);

		CASE(pairs[i].label);
		CHECK(str_eq(sign(&left, &a), sign(&right, &a)) == pairs[i].are_equal);
	}
	arena_fini(&a);
}
