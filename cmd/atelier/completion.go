package main

import (
	_ "embed"
	"fmt"
	"io"
)

// The scripts hand the line up to the cursor to "atelier __complete", which
// prints a candidate a line: the whole word, a tab, and a description.
var (
	//go:embed completion/atelier.bash
	bashCompletion string
	//go:embed completion/atelier.zsh
	zshCompletion string
	//go:embed completion/atelier.fish
	fishCompletion string
)

type completionCmd struct {
	Shell string `arg:"" help:"bash, zsh or fish." enum:"bash,zsh,fish"`
}

// Help returns the instructions below the command's description.
func (completionCmd) Help() string {
	return "bash: source <(atelier completion bash)  (in ~/.bashrc)\n\n" +
		"zsh: source <(atelier completion zsh)  (in ~/.zshrc, after compinit)\n\n" +
		"fish: atelier completion fish | source  (in ~/.config/fish/config.fish)"
}

// Run prints the script of a shell.
func (c completionCmd) Run(p *program) error {
	_, err := io.WriteString(p.stdout, map[string]string{"bash": bashCompletion, "zsh": zshCompletion, "fish": fishCompletion}[c.Shell])
	return err
}

type completeCmd struct {
	Line string `arg:"" optional:"" help:"The command line up to the cursor."`
}

// Run prints the candidates for the last word of a line. Errors of the service
// print nothing, because a shell would mix them into the line.
func (c completeCmd) Run(p *program) error {
	for _, one := range p.completeLine(c.Line) {
		text := one.word
		if one.help != "" {
			text += "\t" + shortenWords(cleanText(one.help), 60)
		}
		if _, err := fmt.Fprintln(p.stdout, text); err != nil {
			return err
		}
	}
	return nil
}
