/* node.h - a process tells the others, and the alarms, that it is alive, and what only it can see. */
#pragma once

#include "base/attr.h"
#include "base/err.h"
#include "kernel/records.h"
#include "store/session.h"
#include "store/store.h"

enum { NODE_SILENT_MS = 60000, NODE_FORGET_MS = 86400000 };

/* Write the node's record as it is now; arg is a struct node. Nodes that are silent for NODE_FORGET_MS are forgotten. */
txn_fn node_beat;
txn_fn node_leave; /* ends in order: removes the record */

struct node_list {
	struct page page; /* the answer: struct node records, at most 1,000 */
};
txn_fn node_list; /* read-only */

/* State a fact: since_ms moves when its value changes, and then FactChanged is emitted. arg is a struct fact with name, value, text. */
txn_fn fact_state;

/* RC_NOT_FOUND. arg is a struct fact with its name set; read-only. */
txn_fn fact_get;
