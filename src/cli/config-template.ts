/** What `config init` writes when no model is named: a small local one, so that nothing leaves the machine. */
export const TEMPLATE_MODEL = 'ollama/qwen3:8b'

/** A commented configuration to start from (EC 24.1). */
export const configTemplate = (
  model: string = TEMPLATE_MODEL,
): string => `# Switchyard: which model serves which task, and what it may see and do.
# Global: config.toml in the configuration folder. Project: .switchyard/config.toml.
# A project's values replace the global ones, path lists are united, and permissions and privacy may only be tightened.

[routing.default]
model = ${JSON.stringify(model)}
# fallbacks = ["openai-compat:lab/large"]

# The first matching rule with the lowest priority number wins.
# [[routing.rules]]
# name = "reviews"
# intent = "review"
# model = "openai-compat:lab/large"
# cost_limit = "0.50"
#
# [[routing.rules]]
# name = "payments stay home"
# priority = 5
# paths = ["payments/**"]
# local_only = true
# model = "ollama/qwen3:8b"

[classification]
default_intent = "chat"

# [[classification.rules]]
# intent = "review"
# keywords = ["review", "audit"]
# requires_any_context = ["git_diff"]

[privacy]
# Files that no remote model sees; secrets such as **/.env are always among them.
restricted_paths = []

[privacy.remote]
# Before context goes to a remote model: allow, ask or deny.
mode = "ask"
blocked_paths = []

[tools.permissions]
# allow, ask or deny, by the name of the tool: read_file, read_lines, list_files, search_files, show_changes,
# write_file, edit_file, shell. What only reads is allowed unless it is named here, the others are asked for.
read_file = "allow"
write_file = "ask"
edit_file = "ask"
shell = "ask"

[local_preferences]
# Apply file changes without asking.
auto_apply = false
# Use local models only.
local_only = false
no_network = false
# Make new sessions encrypted: what is said in them is stored as ciphertext, and the key stays on this machine.
encrypt_sessions = false
`
