package config

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"
)

// WriteYAML writes a settings file to start from: every setting with its meaning
// and its default, commented out. Names are whole (limits.active_runs), so that
// a line works by itself once it is no comment any more.
func WriteYAML(w io.Writer, app *kong.Application) error {
	return writeTemplate(w, app, "# Settings of Atelier, for --config. Take the # from a line to change its setting.\n",
		func(f *kong.Flag) string {
			if f.Name == "config" {
				return "" // a file does not name itself
			}
			return Name(f.Name) + ": " + yamlValue(f)
		})
}

// WriteEnvironment is WriteYAML for a file of environment variables, such as
// systemd's EnvironmentFile has it.
func WriteEnvironment(w io.Writer, app *kong.Application) error {
	return writeTemplate(w, app, "# Settings of Atelier as environment variables. Take the # from a line to change its setting.\n",
		func(f *kong.Flag) string { return Variable(f.Name) + "=" + f.Default })
}

// writeTemplate writes a line for each setting, under what it means.
func writeTemplate(w io.Writer, app *kong.Application, head string, line func(*kong.Flag) string) error {
	var b strings.Builder
	b.WriteString(head)
	for _, f := range app.Node.Flags {
		text := line(f)
		if f.Name == "help" || text == "" {
			continue
		}
		fmt.Fprintf(&b, "\n# %s\n#%s\n", f.Help, text)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// yamlValue writes a default so that YAML reads it as it is. A list is written
// as one.
func yamlValue(f *kong.Flag) string {
	if !f.IsSlice() {
		return yamlScalar(f.Default)
	}
	var items []string
	for item := range strings.SplitSeq(f.Default, ",") {
		if item != "" {
			items = append(items, yamlScalar(item))
		}
	}
	return "[" + strings.Join(items, ", ") + "]"
}

// yamlScalar quotes what YAML would not read as the same text.
func yamlScalar(value string) string {
	if value == "" || strings.ContainsAny(value, ":#{}[],&*!|>'\"%@` ") {
		return strconv.Quote(value)
	}
	return value
}
