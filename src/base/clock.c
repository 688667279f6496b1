/* SPDX-License-Identifier: Apache-2.0 */
/* clock.c - the only reader of the system's clocks, besides steady.c. Everything else is given the time. */
#include "base/clock.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <time.h>

#include "base/steady.h"

static struct wall read_system_clock(const struct clock *c UNUSED)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (struct wall){ (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000 };
}

static struct mono read_system_mono(const struct clock *c UNUSED)
{
	return mono_now();
}

const struct clock clock_real = { .wall = read_system_clock, .mono = read_system_mono };

bool clock_is_real(const struct clock *c)
{
	return c->steady ? !steady_differs_ms(c->steady) : c->wall == read_system_clock;
}

/* --- a clock that goes faster --- */

/* Microseconds, so that at the greatest scale a step is a tenth of a second and three years still fit. */
static int64_t elapsed_ms(const struct clock *c)
{
	return (mono_ns() / 1000 - c->start_us) * c->scale / 1000;
}

static struct wall read_scaled_clock(const struct clock *c)
{
	return (struct wall){ c->start_ms + elapsed_ms(c) };
}

static struct mono read_scaled_mono(const struct clock *c)
{
	return (struct mono){ c->start_us / 1000 + elapsed_ms(c) };
}

struct clock clock_scaled(struct wall start, int64_t scale)
{
	assert(scale >= 1 && scale <= CLOCK_SCALE_MAX);
	return (struct clock){ .wall = read_scaled_clock,
		               .mono = read_scaled_mono,
		               .scale = scale,
		               .start_ms = start.ms,
		               .start_us = mono_ns() / 1000 };
}

int64_t clock_span_ms(const struct clock *c, int64_t machine_ms)
{
	return machine_ms * (c->scale ? c->scale : 1);
}

int64_t clock_wait_ms(const struct clock *c, int64_t span_ms)
{
	int64_t scale = c->scale ? c->scale : 1;

	return span_ms / scale + (span_ms % scale > 0);
}

int64_t mono_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

struct mono mono_now(void)
{
	return (struct mono){ mono_ns() / 1000000 };
}

void mono_sleep(int64_t ms)
{
	struct timespec left = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

	while (nanosleep(&left, &left) != 0 && errno == EINTR)
		;
}

struct str iso_time(int64_t sec, char ret[ISO_TIME_SIZE])
{
	time_t    t = (time_t)sec;
	struct tm tm;
	int       n;

	if (!gmtime_r(&t, &tm))
		return STR("");
	/* Not strftime(): its %Y has no leading zeros. */
	n = snprintf(ret, ISO_TIME_SIZE, "%04d-%02d-%02dT%02d:%02d:%02dZ", tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday,
	             tm.tm_hour, tm.tm_min, tm.tm_sec);
	return n < ISO_TIME_SIZE ? str_of(ret, (size_t)n) : STR("");
}

struct str iso_time_ms(int64_t ms, char ret[ISO_TIME_SIZE])
{
	struct str sec = iso_time(ms / 1000, ret);

	if (sec.n == 0)
		return sec;
	(void)snprintf(ret + sec.n - 1, ISO_TIME_SIZE - sec.n + 1, ".%03dZ", (int)(ms % 1000)); /* fits */
	return str_from(ret);
}

/* Two digits at p within [0, max]; -1 when they are not. */
static int two_digits(const char *p, int max)
{
	int number;

	if (p[0] < '0' || p[0] > '9' || p[1] < '0' || p[1] > '9')
		return -1;
	number = (p[0] - '0') * 10 + (p[1] - '0');
	return number <= max ? number : -1;
}

static bool parse_zone(struct str zone, int64_t *ret_offset_sec)
{
	int hours, minutes;

	if (str_eq(zone, STR("Z"))) {
		*ret_offset_sec = 0;
		return true;
	}
	if (zone.n != 6 || (zone.p[0] != '+' && zone.p[0] != '-') || zone.p[3] != ':')
		return false;
	hours = two_digits(zone.p + 1, 23);
	minutes = two_digits(zone.p + 4, 59);
	if (hours < 0 || minutes < 0)
		return false;
	*ret_offset_sec = (zone.p[0] == '-' ? -1 : 1) * (hours * 3600 + minutes * 60);
	return true;
}

bool iso_time_parse(struct str text, int64_t *ret_sec)
{
	struct tm tm = { 0 }, day;
	int       century, year;
	int64_t   offset;
	size_t    at = 19;

	if (text.n < 20 || text.p[4] != '-' || text.p[7] != '-' || text.p[10] != 'T' || text.p[13] != ':' ||
	    text.p[16] != ':')
		return false;
	century = two_digits(text.p, 99);
	year = two_digits(text.p + 2, 99);
	tm.tm_mon = two_digits(text.p + 5, 12) - 1;
	tm.tm_mday = two_digits(text.p + 8, 31);
	tm.tm_hour = two_digits(text.p + 11, 23);
	tm.tm_min = two_digits(text.p + 14, 59);
	tm.tm_sec = two_digits(text.p + 17, 60);
	if (century < 0 || year < 0 || tm.tm_mon < 0 || tm.tm_mday < 1 || tm.tm_hour < 0 || tm.tm_min < 0 ||
	    tm.tm_sec < 0)
		return false;
	tm.tm_year = century * 100 + year - 1900;
	day = (struct tm){ .tm_year = tm.tm_year, .tm_mon = tm.tm_mon, .tm_mday = tm.tm_mday };
	(void)timegm(&day); /* takes the 31st of February for the 2nd of March */
	if (day.tm_mday != tm.tm_mday)
		return false;
	if (text.p[at] == '.')
		for (at++; at < text.n && text.p[at] >= '0' && text.p[at] <= '9';)
			at++;
	if (!parse_zone(str_of(text.p + at, text.n - at), &offset))
		return false;
	*ret_sec = (int64_t)timegm(&tm) - offset;
	return true;
}
