/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_config.c - any configuration file is either taken, with every value within its limits, or refused with a
 * reason. */
#include "fuzz.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/config/config.h"
#include "app/signin.h"
#include "http/api/api.h"

static void check_taken(const struct config *c)
{
	struct api_tokens tokens;
	struct buf        out;

	must(config_number(c, CONFIG_LAB_HOURS) >= 1 && config_number(c, CONFIG_LAB_HOURS) <= 8760);
	must(config_number(c, CONFIG_CLEANUP_BATCH_DELAY) >= 0);
	must(config_number(c, CONFIG_CLEANUP_BATCH_DELAY) <= 86400000);
	must(config_number(c, CONFIG_LOG_LEVEL) >= 0 && config_number(c, CONFIG_LOG_LEVEL) <= 3);
	must(config_str(c, CONFIG_BASE_PATH).n == 0 || config_str(c, CONFIG_BASE_PATH).p[0] == '/');
	for (int id = 0; id < CONFIG_COUNT; id++)
		must(strlen(c->values[id].text.p) == c->values[id].text.n);
	buf_init(&out, 1 << 20);
	config_print(c, &out);
	must(!out.is_full);
	if (config_str(c, CONFIG_API_TOKEN).n >= 16 && !memchr(config_text(c, CONFIG_API_TOKEN), ' ', 16))
		must(!strstr(out.p, config_text(c, CONFIG_API_TOKEN)));
	buf_fini(&out);
	if (tokens_read(c, &tokens, NULL) == RC_OK)
		for (size_t i = 0; i < tokens.track.count; i++)
			must(tokens.track.items[i].n >= 16 && tokens.track.items[i].n <= 256);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const nothing[] = { NULL };
	struct config            c;
	struct buf               problems;
	char                     path[64];
	int                      fd = memfd_create("config", MFD_CLOEXEC);

	must(fd >= 0 && fchmod(fd, 0600) == 0 && write(fd, data, size) == (ssize_t)size);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	buf_init(&problems, 1 << 20);
	if (config_load(&c, nothing, path, &problems) == RC_OK) {
		must(problems.n == 0);
		check_taken(&c);
	} else {
		must(problems.n > 0);
	}
	config_fini(&c);
	buf_fini(&problems);
	close(fd);
	return 0;
}
