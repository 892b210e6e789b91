package docs

// section is a group of pages in the navigation.
type section struct {
	Title string
	names []string // of the Markdown files, without .md
}

// homeName is the page at /docs itself.
const homeName = "index"

// contents lists every page in reading order. A test compares it with the
// embedded files.
var contents = []section{
	{"Start", []string{homeName, "quickstart", "concepts", "studio"}},
	{"Guides", []string{"generate", "files", "events", "webhooks", "devices", "boards", "companies", "budgets", "reports", "scim"}},
	{"Command line and clients", []string{"cli", "clients", "openai-clients", "assistants", "oauth"}},
	{"Tools and engines", []string{
		"tools", "flows", "engines", "import", "builtin", "sketch", "comfyui", "cog", "openai", "a1111", "replicate", "fal", "exec",
	}},
	{"Operating", []string{"install", "operating", "nodes", "pools", "scaling", "monitoring", "storage", "move", "people", "operators", "upgrade"}},
	{"Reference", []string{"errors", "security"}},
}
