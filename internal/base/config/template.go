package config

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"
)

// WriteYAML writes a template of the settings file: every setting with its
// meaning and its default, commented out. Names are written in full
// (limits.active_runs), so that each line is valid by itself when it is
// uncommented.
func WriteYAML(w io.Writer, app *kong.Application) error {
	return writeTemplate(w, app, "# Settings of Atelier, for --config. Remove the # from a line to change its setting.\n",
		func(f *kong.Flag) string {
			if f.Name == "config" {
				return "" // the path of the settings file cannot be set in that file
			}
			return Name(f.Name) + ": " + yamlValue(f)
		})
}

// WriteEnvironment is like WriteYAML but writes environment variables, in the
// format of systemd's EnvironmentFile.
func WriteEnvironment(w io.Writer, app *kong.Application) error {
	return writeTemplate(w, app, "# Settings of Atelier as environment variables. Remove the # from a line to change its setting.\n",
		func(f *kong.Flag) string { return Variable(f.Name) + "=" + f.Default })
}

// writeTemplate writes head and then, for each setting, its meaning and the
// result of line, both commented out. It skips settings for which line returns
// "".
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

// yamlValue returns the default of a setting in YAML. A list becomes a YAML
// list.
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

// yamlScalar returns value for use in YAML, in quotes if it is empty or has
// characters with a special meaning.
func yamlScalar(value string) string {
	if value == "" || strings.ContainsAny(value, ":#{}[],&*!|>'\"%@` ") {
		return strconv.Quote(value)
	}
	return value
}
