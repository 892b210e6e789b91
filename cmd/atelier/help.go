package main

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/alecthomas/kong"

	"atelier/internal/engine/a1111"
	"atelier/internal/engine/openai"
	"atelier/internal/people/company"
)

// helpWidth is the maximum line length of the help in characters, even on
// wider terminals.
const helpWidth = 100

// helpColumns is the line length in characters of texts that do not depend on
// the terminal's width.
const helpColumns = 80

// helpWords are the variables that the help texts of flags can contain.
var helpWords = kong.Vars{
	"openaiCalls":        openai.CallHelp,
	"a1111Calls":         a1111.CallHelp,
	"companyPermissions": joinPermissions(company.CompanyPermissions),
	"teamPermissions":    joinPermissions(company.TeamPermissions),
}

func joinPermissions(all []company.Permission) string {
	var words []string
	for _, p := range all {
		words = append(words, string(p))
	}
	return strings.Join(words, ", ")
}

type helpCmd struct {
	Command []string `arg:"" optional:"" help:"The words of a command, such as admin person create."`
}

func (c helpCmd) Run(p *program) error {
	return runCommand(p.ctx, append(c.Command, "--help"), p.streams)
}

// printHelp prints the help of the program, which lists every setting, or the
// help of one command with its own flags and the names of its settings.
func printHelp(o kong.HelpOptions, k *kong.Context) error {
	node := k.Selected()
	if node == nil {
		o.NoExpandSubcommands = true
		return kong.DefaultHelpPrinter(o, k)
	}
	for _, f := range k.Model.Node.Flags {
		f.Hidden = f.Name != helpFlag
	}
	o.NoAppSummary = true
	if _, err := fmt.Fprint(k.Stdout, "Usage: ", wrapWords(usageWords(node), "    ", helpColumns-len("Usage: ")), "\n"); err != nil {
		return err
	}
	if err := kong.DefaultHelpPrinter(o, k); err != nil {
		return err
	}
	_, err := fmt.Fprint(k.Stdout, "\n", describeSettings(node), "\n")
	return err
}

// usageWords returns the words of a command's usage line. Required flags that
// exclude each other are shown as alternatives.
func usageWords(node *kong.Node) []string {
	words := []string{"atelier " + commandPath(node)}
	if !node.Leaf() {
		return append(words, "<command>")
	}
	var groups []string
	alternatives := map[string][]string{}
	for _, f := range node.Flags {
		switch {
		case !f.Required:
		case len(f.Xor) == 0:
			words = append(words, f.Summary())
		default:
			group := f.Xor[0]
			if len(alternatives[group]) == 0 {
				groups = append(groups, group)
			}
			alternatives[group] = append(alternatives[group], f.Summary())
		}
	}
	for _, group := range groups {
		words = append(words, "("+strings.Join(alternatives[group], " | ")+")")
	}
	for _, p := range node.Positional {
		words = append(words, p.Summary())
	}
	return append(words, "[flags]")
}

// commandPath returns the words of a command. Unlike Node.Path it leaves out
// aliases.
func commandPath(node *kong.Node) string {
	if node.Parent == nil {
		return ""
	}
	return strings.TrimSpace(commandPath(node.Parent) + " " + node.Name)
}

const helpFlag = "help"

// The two special values of the struct tag "settings".
const (
	allSettings = "all"
	noSettings  = "none"
)

// commonSettings are the settings that select the installation. Every command
// without settings:"none" accepts them, so that scripts can pass them to any
// command.
var commonSettings = []string{"config", "data", "database"}

// usedSettings returns the settings that a command accepts as flags: the common
// settings and the comma-separated names in the struct tag "settings" of the
// command and its parents. A name that ends with a dot means all settings with
// that prefix.
func usedSettings(node *kong.Node) (names []string, all bool) {
	names = slices.Clone(commonSettings)
	for n := node; n != nil && n.Tag != nil; n = n.Parent {
		switch tag := n.Tag.Get("settings"); tag {
		case "":
		case allSettings:
			return nil, true
		case noSettings:
			return nil, false
		default:
			names = append(names, strings.Split(tag, ",")...)
		}
	}
	return names, false
}

// refuseUnused returns an error if a setting was given as a flag to a command
// that does not use it. Settings from the environment and the settings file
// apply to all commands and are never refused.
func refuseUnused(k *kong.Context) error {
	node := k.Selected()
	names, all := usedSettings(node)
	if all {
		return nil
	}
	isSetting := map[*kong.Flag]bool{}
	for _, f := range k.Model.Node.Flags {
		isSetting[f] = true
	}
	for _, p := range k.Path {
		if p.Flag == nil || p.Resolved || !isSetting[p.Flag] || p.Flag.Name == helpFlag {
			continue
		}
		used := slices.ContainsFunc(names, func(name string) bool {
			return p.Flag.Name == name || strings.HasSuffix(name, ".") && strings.HasPrefix(p.Flag.Name, name)
		})
		if !used {
			return fmt.Errorf("--%s: atelier %s does not use this setting; atelier help %[2]s lists the settings it accepts", p.Flag.Name, commandPath(node))
		}
	}
	return nil
}

// describeSettings returns the last line of a command's help, which lists the
// settings that the command accepts.
func describeSettings(node *kong.Node) string {
	if !node.Leaf() {
		return fmt.Sprintf("Run \"atelier help %s <command>\" for more information on a command.", commandPath(node))
	}
	names, all := usedSettings(node)
	switch {
	case all:
		return "Every setting can be a flag: \"atelier help\" and \"atelier config\" list them."
	case len(names) == 0:
		return "This command has no settings."
	}
	var flags []string
	for _, name := range names {
		if strings.HasSuffix(name, ".") {
			name += "…"
		}
		flags = append(flags, "--"+name)
	}
	return "Settings accepted as flags (\"atelier help\" and \"atelier config\" explain them):\n  " + wrapWords(withCommas(flags), "  ", helpColumns-2)
}

// withCommas appends a comma to every word except the last.
func withCommas(words []string) []string {
	list := slices.Clone(words)
	for i := range len(list) - 1 {
		list[i] += ","
	}
	return list
}

// wrapWords joins words into lines of at most width characters. Every line
// except the first begins with indent, which does not count towards the width.
func wrapWords(words []string, indent string, width int) string {
	var b strings.Builder
	column := 0
	for i, word := range words {
		length := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case column+1+length > width:
			b.WriteString("\n" + indent)
			column = 0
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += length
	}
	return b.String()
}
