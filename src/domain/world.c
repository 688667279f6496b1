/* SPDX-License-Identifier: Apache-2.0 */
/* world.c - the words of world.h, from the tables. */
#include "domain/world.h"

const char *const world_call_names[WORLD_CALL_COUNT] = { WORLD_CALLS(ROW_TEXT) };
const char *const world_fault_names[WORLD_FAULT_COUNT] = { WORLD_FAULTS(ROW_TEXT) };
const bool        world_call_changes[WORLD_CALL_COUNT] = { WORLD_CALLS(ROW_THIRD) };
const bool        world_fault_is_of_call[WORLD_FAULT_COUNT] = { WORLD_FAULTS(ROW_THIRD) };
