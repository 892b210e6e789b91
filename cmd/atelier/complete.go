package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"
)

// candidate is a word that can follow in a command line.
type candidate struct {
	word string
	help string
}

// completionTime bounds the calls of the service while a person waits for a
// shell.
const completionTime = 3 * time.Second

// completer completes one command line.
type completer struct {
	*program
	node   *kong.Node        // the command so far
	flags  map[string]string // values of flags before the last word
	values []string          // positional arguments before the last word
	last   string            // the word to complete
}

// completeLine returns the candidates for the last word of a line.
func (p *program) completeLine(line string) []candidate {
	words := splitWords(line)
	if len(words) > 2 && words[1] == "help" { // its arguments are the words of another command
		words = slices.Delete(words, 1, 2)
	}
	if len(words) < 2 {
		return nil
	}
	ctx, cancel := context.WithTimeout(p.ctx, completionTime)
	defer cancel()
	own := *p
	own.ctx = ctx
	c := &completer{program: &own, node: p.kong.Model.Node, flags: map[string]string{}, last: words[len(words)-1]}
	waiting := c.readWords(words[1 : len(words)-1])

	var all []candidate
	switch {
	case waiting != nil:
		all = c.completeValue(waiting.Value, "")
	case strings.HasPrefix(c.last, "-"):
		all = c.completeFlag()
	default:
		all = c.completeArgument()
	}
	all = slices.DeleteFunc(all, func(one candidate) bool { return !strings.HasPrefix(one.word, c.last) })
	return all
}

// splitWords splits a line into words as a shell does. The last word is the one
// to complete, and may be empty or have an open quote.
func splitWords(line string) []string {
	words := []string{""}
	quote := rune(0)
	escaped := false
	for _, r := range line {
		last := &words[len(words)-1]
		switch {
		case escaped:
			*last += string(r)
			escaped = false
		case r == '\\' && quote != '\'':
			escaped = true
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote = r
		case quote == 0 && (r == ' ' || r == '\t' || r == '\n'):
			if *last != "" {
				words = append(words, "")
			}
		default:
			*last += string(r)
		}
	}
	return words
}

// readWords reads the words before the last one. It returns the flag whose value
// the last word is, or nil.
func (c *completer) readWords(words []string) *kong.Flag {
	for i := 0; i < len(words); i++ {
		word := words[i]
		if !strings.HasPrefix(word, "-") {
			if child := findChild(c.node, word); child != nil && len(c.values) == 0 {
				c.node = child
			} else {
				c.values = append(c.values, word)
			}
			continue
		}
		name, value, hasValue := strings.Cut(strings.TrimLeft(word, "-"), "=")
		flag := c.findFlag(name)
		switch {
		case hasValue || flag == nil || flag.IsBool():
			c.flags[name] = value
		case i == len(words)-1:
			return flag
		default:
			i++
			c.flags[flag.Name] = words[i]
		}
	}
	return nil
}

func findChild(node *kong.Node, name string) *kong.Node {
	for _, child := range node.Children {
		if child.Name == name || slices.Contains(child.Aliases, name) {
			return child
		}
	}
	return nil
}

// findFlag returns a flag of the command, of its default command, or of the
// program if the command takes settings.
func (c *completer) findFlag(name string) *kong.Flag {
	for _, f := range c.usableFlags() {
		if f.Name == name || slices.Contains(f.Aliases, name) || f.Short != 0 && string(f.Short) == name {
			return f
		}
	}
	return nil
}

func (c *completer) usableFlags() []*kong.Flag {
	var all []*kong.Flag
	for _, node := range []*kong.Node{c.node, c.node.DefaultCmd} {
		if node != nil && node != c.kong.Model.Node {
			all = append(all, node.Flags...)
		}
	}
	names, every := usedSettings(c.node)
	for _, f := range c.kong.Model.Flags {
		used := f.Name == helpFlag || every || slices.ContainsFunc(names, func(name string) bool {
			return f.Name == name || strings.HasSuffix(name, ".") && strings.HasPrefix(f.Name, name)
		})
		if used {
			all = append(all, f)
		}
	}
	return all
}

// completeFlag completes the name of a flag, or the value in --flag=value.
func (c *completer) completeFlag() []candidate {
	name, _, hasValue := strings.Cut(strings.TrimLeft(c.last, "-"), "=")
	if hasValue {
		if flag := c.findFlag(name); flag != nil {
			return c.completeValue(flag.Value, "--"+name+"=")
		}
		return nil
	}
	var all []candidate
	for _, f := range c.usableFlags() {
		if !f.Hidden {
			all = append(all, candidate{"--" + f.Name, f.Help})
		}
	}
	return all
}

// completeArgument completes a command or a positional argument.
func (c *completer) completeArgument() []candidate {
	var all []candidate
	if len(c.values) == 0 {
		for _, child := range c.node.Children {
			if !child.Hidden {
				all = append(all, candidate{child.Name, child.Help})
			}
		}
	}
	node := c.node
	if node.DefaultCmd != nil {
		node = node.DefaultCmd
	}
	if len(node.Positional) == 0 {
		return all
	}
	i := min(len(c.values), len(node.Positional)-1)
	value := node.Positional[i]
	if i < len(c.values) && !value.IsCumulative() {
		return all
	}
	return append(all, c.completeValue(value, "")...)
}

// completeValue completes the value of a flag or an argument. prefix is the part
// of the word before it.
func (c *completer) completeValue(value *kong.Value, prefix string) []candidate {
	var all []candidate
	for _, one := range value.EnumSlice() {
		if one != "" {
			all = append(all, candidate{one, ""})
		}
	}
	if len(all) == 0 {
		all = c.completeKind(value, strings.TrimPrefix(c.last, prefix))
	}
	for i := range all {
		all[i].word = prefix + all[i].word
	}
	return all
}
