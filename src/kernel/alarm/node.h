/* node.h - a process tells the others, and the alarms, that it is alive, and what only it can see. */
#pragma once

#include "kernel/records.h"
#include "store/session.h"
#include "store/store.h"

enum { NODE_SILENT_MS = 60000, NODE_FORGET_MS = 86400000 };

/* Write the node's record as it is now; arg is a struct node. Nodes silent for NODE_FORGET_MS are forgotten. */
txn_fn node_beat;
txn_fn node_leave; /* ends in order: removes the record */

txn_fn node_list; /* arg is a struct page: struct node records, at most 1,000; read-only */

/* State a fact (name, value, text): when its value changes, since_ms moves and FactChanged is emitted. */
txn_fn fact_state;

/* RC_NOT_FOUND. arg is a struct fact with its name set; read-only. */
txn_fn fact_get;
