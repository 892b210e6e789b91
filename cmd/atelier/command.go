package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/alecthomas/kong"

	"atelier/internal/base/config"
)

// streams has the environment, the input and the outputs of the program.
type streams struct {
	getenv         func(string) string
	environ        []string
	stdin          io.Reader
	stdout, stderr io.Writer
}

// cli defines the command line. The struct tag "settings" lists the settings
// that a command accepts as flags (see usedSettings).
type cli struct {
	config.Config `embed:""`

	Serve    serveCmd    `cmd:"" settings:"all" help:"Run the service."`
	Migrate  migrateCmd  `cmd:"" settings:"connections" help:"Migrate the database to this version's schema; creates it if it does not exist."`
	Check    checkCmd    `cmd:"" settings:"connections,secret,blobs,s3.,limits." help:"Check the invariants of the database; writes nothing."`
	Backup   backupCmd   `cmd:"" settings:"connections,secret,blobs,s3." help:"Back up an installation into one file while it runs."`
	Restore  restoreCmd  `cmd:"" settings:"connections,secret,blobs,runs." help:"Restore a backup into a new data folder."`
	Admin    adminCmd    `cmd:"" settings:"connections,secret" help:"Manage people, companies and credentials."`
	Tools    toolsCmd    `cmd:"" help:"Check, apply, list and import the tools of the catalog."`
	Generate generateCmd `cmd:"" settings:"none" help:"Run a tool on a service and save the results."`
	Keys     keysCmd     `cmd:"" settings:"connections,secret" help:"Manage the keys that sign ID tokens."`
	Settings settingsCmd `cmd:"" name:"config" settings:"all" help:"Print the current settings and the source of each."`
	Version  versionCmd  `cmd:"" help:"Print the version, its commit and date (same as --version)."`
	Notice   noticeCmd   `cmd:"" help:"Print the licences of the works that the picture model was trained on."`
	Help     helpCmd     `cmd:"" settings:"none" help:"Show all commands and settings, or how to use one command."`
}

// usageError is the error for an invalid command line, after which the program
// exits with status 2.
type usageError struct{ error }

// installation opens the database, keys, files and engines that the settings
// specify.
type installation struct {
	streams
	cfg *config.Config
}

// program is passed to every command. It has the settings, streams and
// context.
type program struct {
	installation
	ctx     context.Context
	sources *config.Sources
	kong    *kong.Context
}

// runCommand parses the command line and runs the command.
func runCommand(ctx context.Context, args []string, s streams) error {
	switch {
	case len(args) == 0:
		args = []string{"help"}
	case args[0] == "--version":
		args = append([]string{"version"}, args[1:]...)
	}

	var c cli
	sources, err := config.NewSources(args, s.getenv)
	if err != nil {
		return err
	}
	exited := false
	parser, err := kong.New(&c,
		kong.Name("atelier"),
		kong.Description("Runs media generation jobs on behalf of signed-in people. "+
			"Every setting can be given in a YAML file, as an ATELIER_… variable or as a flag; atelier config lists them."),
		kong.Resolvers(sources),
		kong.Writers(s.stdout, s.stderr),
		kong.Exit(func(int) { exited = true }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: helpWidth}),
		kong.Help(printHelp),
		helpWords,
	)
	if err != nil {
		return fmt.Errorf("command line: %w", err)
	}
	k, err := parser.Parse(config.FlagNames(args))
	if exited { // help was printed
		return nil
	}
	if err != nil {
		return usageError{err}
	}
	if err := refuseUnused(k); err != nil {
		return usageError{err}
	}
	if err := sources.Locate(k, c.Config.CheckSettings()); err != nil {
		return usageError{fmt.Errorf("settings:\n%w", err)}
	}
	p := &program{
		installation: installation{streams: s, cfg: &c.Config},
		ctx:          ctx,
		sources:      sources,
		kong:         k,
	}
	if k.Command() != "serve" { // serve logs these warnings itself
		for _, warning := range p.unknownVariables() {
			fmt.Fprintln(s.stderr, "atelier: warning:", warning)
		}
	}
	return k.Run(p)
}

// printResult prints v as JSON if asJSON is true, and otherwise the
// human-readable text.
func (s streams) printResult(asJSON bool, v any, text string) error {
	if !asJSON {
		_, err := fmt.Fprintln(s.stdout, text)
		return err
	}
	e := json.NewEncoder(s.stdout)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// printTable prints rows in aligned columns.
func (s streams) printTable(rows [][]string) error {
	w := tabwriter.NewWriter(s.stdout, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		for i, cell := range row {
			if i > 0 {
				fmt.Fprint(w, "\t")
			}
			fmt.Fprint(w, cell)
		}
		fmt.Fprintln(w)
	}
	return w.Flush()
}

type jsonFlag struct {
	JSON bool `name:"json" help:"Print one JSON object."`
}

type settingsCmd struct {
	jsonFlag
	YAML bool `name:"yaml" xor:"form" help:"Print a settings file to start from, with every setting commented out."`
	Env  bool `xor:"form" help:"Print a file of environment variables to start from."`
}

func (c settingsCmd) Run(p *program) error {
	switch {
	case c.YAML:
		return config.WriteYAML(p.stdout, p.kong.Model)
	case c.Env:
		return config.WriteEnvironment(p.stdout, p.kong.Model)
	}
	p.cfg.FillAddresses(p.cfg.Listen)
	all := p.sources.Settings(p.kong, p.cfg)
	if c.JSON {
		type setting struct {
			Value  string `json:"value"`
			Source string `json:"source"`
		}
		byName := map[string]setting{}
		for _, s := range all {
			byName[s.Name] = setting{s.Value, s.Source}
		}
		return p.printResult(true, map[string]any{"settings": byName}, "")
	}
	rows := [][]string{{"SETTING", "VALUE", "SOURCE", "MEANING"}}
	for _, s := range all {
		rows = append(rows, []string{s.Name, s.Value, s.Source, s.Help})
	}
	return p.printTable(rows)
}

type migrateCmd struct{ jsonFlag }

func (c migrateCmd) Run(p *program) error {
	db, err := p.openDatabase(p.ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	steps, err := db.Migrate(p.ctx)
	if err != nil {
		return err
	}
	return p.printResult(c.JSON, map[string]int{"steps": steps}, fmt.Sprintf("the database is up to date (%d migrations applied)", steps))
}

var errViolations = errors.New("the database violates its invariants")

// countNoun returns a number followed by its noun in the singular or plural.
func countNoun(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}
