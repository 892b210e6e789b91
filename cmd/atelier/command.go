package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"atelier/internal/base/config"
	"atelier/internal/cli/selectjson"
	"atelier/internal/cli/term"
	"atelier/internal/web/api/operator"
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

	Login      loginCmd      `cmd:"" group:"use" settings:"none" help:"Sign in to a service."`
	Logout     logoutCmd     `cmd:"" group:"use" settings:"none" help:"Sign out of a service."`
	Whoami     whoamiCmd     `cmd:"" group:"use" settings:"none" help:"Show who you are, and the balances of your accounts."`
	Profiles   profilesCmd   `cmd:"" group:"use" settings:"none" help:"List the services you are signed in to, and choose one."`
	Tools      toolsCmd      `cmd:"" group:"use" help:"List and show tools; check, apply and import those of an installation."`
	Run        runCmd        `cmd:"" group:"use" aliases:"generate" settings:"none" help:"Run a tool on a service and save the results."`
	Runs       runsCmd       `cmd:"" group:"use" settings:"none" help:"List, show and cancel runs."`
	Watch      watchCmd      `cmd:"" group:"use" settings:"none" help:"Follow runs until they end."`
	Library    libraryCmd    `cmd:"" group:"use" settings:"none" help:"List, show, delete and restore results."`
	Download   downloadCmd   `cmd:"" group:"use" settings:"none" help:"Download results and uploads."`
	Upload     uploadCmd     `cmd:"" group:"use" settings:"none" help:"Upload files as inputs of runs."`
	Flows      flowsCmd      `cmd:"" group:"use" settings:"none" help:"Save, check, show and delete flows."`
	Boards     boardsCmd     `cmd:"" group:"use" settings:"none" help:"Manage boards."`
	Tokens     tokensCmd     `cmd:"" group:"use" settings:"none" help:"Manage your access tokens."`
	Devices    devicesCmd    `cmd:"" group:"use" settings:"none" help:"List your devices and browsers, and sign them out."`
	Reports    reportsCmd    `cmd:"" group:"use" settings:"none" help:"Report the usage of a company."`
	MCP        mcpCmd        `cmd:"" name:"mcp" group:"use" settings:"none" help:"Serve the tools of a service to an assistant, over stdin and stdout (Model Context Protocol)."`
	Webhooks   webhooksCmd   `cmd:"" group:"use" settings:"none" help:"Receive webhooks on this machine, and see their deliveries."`
	Completion completionCmd `cmd:"" group:"use" settings:"none" help:"Print the script that completes commands in a shell."`
	Serve      serveCmd      `cmd:"" group:"operate" settings:"all" help:"Run the service."`
	Migrate    migrateCmd    `cmd:"" group:"operate" settings:"connections" help:"Migrate the database to this version's schema; creates it if it does not exist."`
	Check      checkCmd      `cmd:"" group:"operate" settings:"connections,secret,blobs,s3.,limits." help:"Check the invariants of the database; writes nothing."`
	Backup     backupCmd     `cmd:"" group:"operate" settings:"connections,secret,blobs,s3.,log." help:"Back up an installation into one file while it runs."`
	Restore    restoreCmd    `cmd:"" group:"operate" settings:"connections,secret,blobs,s3.,runs." help:"Restore a backup into a new data folder."`
	Move       moveCmd       `cmd:"" group:"operate" settings:"connections,secret,blobs,s3." help:"Move an installation to another database, file store or folder."`
	Simulate   simulateCmd   `cmd:"" group:"operate" settings:"none" help:"Predict how long runs wait, from a description of workers, tools and people."`
	Admin      adminCmd      `cmd:"" group:"operate" settings:"connections,secret" help:"Manage people, companies and credentials."`
	Keys       keysCmd       `cmd:"" group:"operate" settings:"connections,secret" help:"Manage the keys that sign ID tokens."`
	Settings   settingsCmd   `cmd:"" group:"operate" name:"config" settings:"all" help:"Print the current settings and the source of each."`
	Version    versionCmd    `cmd:"" group:"other" help:"Print the version, its commit and date (same as --version)."`
	Notice     noticeCmd     `cmd:"" group:"other" help:"Print the licences of the program and of every work in it."`
	Help       helpCmd       `cmd:"" group:"other" settings:"none" help:"Show all commands and settings, or how to use one command."`
	Complete   completeCmd   `cmd:"" group:"other" name:"__complete" hidden:"" settings:"none" help:"Print the words that can follow in a command line; shells call it."`
}

// commandGroups are the groups of commands in the help.
var commandGroups = []kong.Group{
	{Key: "use", Title: "Commands that use a service:"},
	{Key: "operate", Title: "Commands that operate a service on this machine:"},
	{Key: "other", Title: "Other commands:"},
}

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
	// onRetry is told before a client repeats a request, if it is not nil.
	onRetry func(err error, wait time.Duration)
	// patient commands repeat requests for minutes, because they have begun
	// something that should be finished.
	patient bool
}

// runCommand parses the command line and runs the command.
func runCommand(ctx context.Context, args []string, s streams) error {
	switch {
	case len(args) == 0:
		args = []string{"help"}
	case args[0] == "--version":
		args = append([]string{"version"}, args[1:]...)
	}

	sources, err := config.NewSources(args, s.getenv)
	if err != nil {
		return err
	}
	grammar, cfg := newGrammar(args[0])
	exited := false
	parser, err := kong.New(grammar,
		kong.Name("atelier"),
		kong.Description("Runs media generation jobs on behalf of signed-in people. "+
			"Every setting can be given in a YAML file, as an ATELIER_… variable or as a flag; atelier config lists them."),
		kong.Resolvers(sources),
		kong.Writers(s.stdout, s.stderr),
		kong.Exit(func(int) { exited = true }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: helpWidth}),
		kong.Help(printHelp),
		kong.ExplicitGroups(commandGroups),
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
		return usageError{explainParseError(err)}
	}
	if err := refuseUnused(k); err != nil {
		return usageError{err}
	}
	if err := sources.Locate(k, cfg.CheckSettings()); err != nil {
		return usageError{fmt.Errorf("settings:\n%w", err)}
	}
	p := &program{
		installation: installation{streams: s, cfg: cfg},
		ctx:          ctx,
		sources:      sources,
		kong:         k,
	}
	if k.Command() != "serve" { // serve logs these warnings itself
		for _, warning := range p.unknownVariables() {
			fmt.Fprintln(s.stderr, "atelier: warning:", warning)
		}
	}
	return p.runSelecting(k)
}

// explainParseError leaves the empty value out of the list of a flag's values: it
// only means that the flag is not given.
func explainParseError(err error) error {
	text := err.Error()
	if clean := strings.Replace(text, `one of "",`, `one of `, 1); clean != text {
		return errors.New(clean)
	}
	return err
}

// allCommands are the commands that need the definition of all others.
var allCommands = []string{"help", "__complete"}

// newGrammar returns the definition of the command line for Kong, and the
// settings in it. If the first argument is a command, it is the only one in the
// definition: Kong reads the tags of every flag of every command, which takes
// longer than most commands.
func newGrammar(first string) (grammar any, cfg *config.Config) {
	all := reflect.TypeFor[cli]()
	settings, _ := all.FieldByName("Config")
	settings.Anonymous = false // reflect.StructOf refuses embedded types with methods; the tag embeds it
	for i := range all.NumField() {
		command := all.Field(i)
		names := []string{cmp.Or(command.Tag.Get("name"), strings.ToLower(command.Name)), command.Tag.Get("aliases")}
		if _, isCommand := command.Tag.Lookup("cmd"); !isCommand || !slices.Contains(names, first) || slices.Contains(allCommands, first) {
			continue
		}
		one := reflect.New(reflect.StructOf([]reflect.StructField{settings, command}))
		return one.Interface(), one.Elem().Field(0).Addr().Interface().(*config.Config)
	}
	var c cli
	return &c, &c.Config
}

// runSelecting runs the command. With --select the command prints JSON, and the
// selected parts of it are printed instead.
func (p *program) runSelecting(k *kong.Context) error {
	text := ""
	for _, f := range k.Flags() {
		if f.Name == "select" {
			text = f.Target.String()
		}
	}
	if text == "" {
		return k.Run(p)
	}
	for _, f := range k.Flags() {
		if f.Name == "json" {
			f.Target.SetBool(true)
		}
	}
	expression, err := selectjson.Parse(text)
	if err != nil {
		return usageError{fmt.Errorf("--select: %w", err)}
	}
	from, to := io.Pipe()
	out := p.stdout
	p.stdout = to
	printed := make(chan error, 1)
	go func() {
		err := expression.PrintAll(out, from)
		from.CloseWithError(err)
		printed <- err
	}()
	err = k.Run(p)
	_ = to.Close() // it never fails
	if selected := <-printed; selected != nil {
		return fmt.Errorf("--select: %w", selected)
	}
	return err
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
	_, err := io.WriteString(s.stdout, term.FormatTable(rows, math.MaxInt, false))
	return err
}

// printList is like printTable, but makes the table fit on a terminal. The last
// column has ids if its header says so.
func (s streams) printList(rows [][]string) error {
	_, err := io.WriteString(s.stdout, term.FormatTable(rows, s.tableWidth(), endsWithID(rows[0])))
	return err
}

// endsWithID reports whether the last column of a table has ids.
func endsWithID(header []string) bool {
	last := header[len(header)-1]
	return last == "ID" || last == "RUN"
}

// printFields prints names and their values, one a line. On a terminal long
// values are wrapped.
func (s streams) printFields(rows [][]string) error {
	_, err := io.WriteString(s.stdout, term.FormatFields(rows, s.tableWidth()))
	return err
}

// tableWidth returns the number of columns that a table may have. Programs that
// read the output get whole cells.
func (s streams) tableWidth() int {
	if !term.IsTerminal(s.stdout) {
		return math.MaxInt
	}
	return term.Width(s.stdout)
}

// jsonFlag has the flags of every command that prints a result. runSelecting
// handles Select, which implies JSON.
type jsonFlag struct {
	JSON   bool   `name:"json" help:"Print one JSON object."`
	Select string `aliases:"jq" help:"Print parts of the JSON, such as .data[].id." placeholder:"EXPRESSION"`
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

// shownSettings returns the settings as the API shows them to operators.
func shownSettings(p *program) (shown []operator.Setting) {
	for _, s := range p.sources.Settings(p.kong, p.cfg) {
		shown = append(shown, operator.Setting(s))
	}
	return shown
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
