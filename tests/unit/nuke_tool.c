/* SPDX-License-Identifier: Apache-2.0 */
/* nuke_tool.c - looks after one run of aws-nuke, as the server's own program does: for test_nuke.c. */
#include <string.h>

#include "providers/nuke/program.h"

int main(int argc, char **argv)
{
	return argc == 3 && strcmp(argv[1], NUKE_RUN_COMMAND) == 0 ? nuke_supervise(argv[2]) : 2;
}
