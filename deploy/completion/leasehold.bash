# bash completion of leasehold. Install as share/bash-completion/completions/leasehold: it is then read at the first
# completion. The program itself knows its commands, so this file never goes stale.
eval "$(leasehold completion bash 2>/dev/null)"
