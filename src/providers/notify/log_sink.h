/* log_sink.h - one line of the log for each event: handler of a queue such as "log". No argument. */
#pragma once

#include "kernel/queue.h"

queue_handle_fn log_sink_handle;
